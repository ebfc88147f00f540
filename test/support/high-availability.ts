import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { defaultConfig, type ControllerConfig } from '../../src/domain/config.ts';
import type { ControllerRecord } from '../../src/launcher/controller-record.ts';
import type { HighAvailabilityDesign, HighAvailabilitySecrets } from '../../src/launcher/high-availability/design.ts';
import type { HighAvailabilityDeps } from '../../src/launcher/high-availability/high-availability.ts';
import { systemClock } from '../../src/shared/clock.ts';
import { homePaths } from '../../src/shared/paths.ts';
import { aControllerRecord } from './builders.ts';
import { FakeKubeApi } from './fake-kube-api.ts';
import { providersOf } from './providers.ts';
import { aStubProvider } from './stub-provider.ts';
import { withTempHome } from './temp-home.ts';

/** A small and complete in-cluster controller. */
export function aDesign(change: Partial<HighAvailabilityDesign> = {}): HighAvailabilityDesign {
  return {
    key: 'c0ffee0123456789',
    context: 'prod',
    namespace: 'serving',
    image: 'registry.example/svc:1',
    imagePullSecrets: [],
    database: 'sqlite',
    cpus: undefined,
    memoryGb: undefined,
    diskGb: 200,
    storageClass: undefined,
    balancers: 2,
    endpointService: 'ClusterIP',
    publicHost: 'svc-endpoints.serving.svc',
    hourlyUsd: 0,
    labels: {},
    annotations: {},
    policyVersion: 'policy/v1',
    replicaRules: [{ apiGroups: [''], resources: ['pods'], verbs: ['get', 'list', 'watch', 'create', 'delete', 'patch'] }],
    clusterReadRules: [{ apiGroups: [''], resources: ['nodes', 'pods'], verbs: ['get', 'list', 'watch'] }],
    ...change,
  };
}

/** Content of its Secrets. */
export const someSecrets: HighAvailabilitySecrets = {
  token: 'a-token-that-is-secret',
  files: [
    { path: 'config.yaml', content: 'aws: {profile: lab}\n' },
    { path: 'ssh/id', content: 'PRIVATE KEY\n', once: true },
  ],
  environment: { SVC_DATABASE: 'postgres://svc:hunter2@db/svc' },
};

/** The API groups of a cluster. */
export const apiGroupList = JSON.stringify({ groups: [{ name: 'policy', versions: [{ groupVersion: 'policy/v1' }] }] });

/** Path of a StorageClass that is the default one. */
export const defaultStorageClass = '/apis/storage.k8s.io/v1/storageclasses/standard';

/** A home whose controller is to run in a Kubernetes cluster, which a fake replaces. */
export async function withFakeKubeApi(
  use: (deps: HighAvailabilityDeps, api: FakeKubeApi) => Promise<void>,
  controller: Partial<ControllerConfig> = {},
): Promise<void> {
  await withTempHome(async (home) => {
    const api = new FakeKubeApi();
    api.texts.set('/apis', apiGroupList);
    api.put('/api/v1/namespaces/kube-system', { metadata: { name: 'kube-system' } });
    await use(depsIn(home, api, controller), api);
  });
}

/** The same home alone; `api` is the cluster's API. */
export function depsIn(home: string, api: FakeKubeApi, controller: Partial<ControllerConfig> = {}): HighAvailabilityDeps {
  api.put(defaultStorageClass, { metadata: { annotations: { 'storageclass.kubernetes.io/is-default-class': 'true' } } });
  const settings = { ...defaultConfig.serve.controller, highAvailability: true, image: 'svc:1', ...controller };
  const kubernetes = { ...defaultConfig.kubernetes, allowedContexts: ['prod'], namespace: 'serving' };
  const kubeconfig = join(home, 'kubeconfig');
  const contexts = {
    contexts: [{ name: 'prod', context: { cluster: 'c', user: 'u' } }],
    clusters: [{ name: 'c', cluster: { server: 'https://10.0.0.1:6443' } }],
  };
  writeFileSync(kubeconfig, JSON.stringify({ ...contexts, users: [{ name: 'u', user: { token: 't' } }], 'current-context': 'prod' }));
  process.env['KUBECONFIG'] = kubeconfig;
  const aws = aStubProvider({
    name: 'aws',
    credentials: async () => ({
      summary: 'keys of the profile lab',
      files: [{ path: 'aws/credentials', content: 'AKIA-SECRET' }],
      environment: { AWS_PROFILE: 'lab' },
    }),
  });
  return {
    paths: homePaths(home, 1000),
    providers: providersOf(aws, aStubProvider({ name: 'kubernetes' }), aStubProvider({ name: 'local' })),
    config: async () => ({ ...defaultConfig, serve: { controller: settings }, kubernetes }),
    clock: systemClock,
    signal: new AbortController().signal,
    onStep: () => undefined,
    openApi: () => api,
  };
}

/** The record of its controller before any object exists. */
export const aKubernetesControllerRecord = (change: Partial<ControllerRecord> = {}): ControllerRecord =>
  aControllerRecord({ cluster: { context: 'prod', namespace: 'serving' }, ...change });

/** Paths of two of the objects. */
export const leasePath = '/apis/coordination.k8s.io/v1/namespaces/serving/leases/svc-controller';
export const anchorPath = '/api/v1/namespaces/serving/configmaps/svc-controller';
/** Paths of applied objects, in order. */
export const applied = (api: FakeKubeApi): readonly string[] =>
  api.asked.flatMap((line) => (line.startsWith('apply ') ? [line.slice(6)] : []));
