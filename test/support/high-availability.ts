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
import { placesOf } from './places.ts';
import { aStubPlace } from './stub-place.ts';
import { withTempHome } from './temp-home.ts';

/** A controller in a cluster, small and complete. */
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

/** What its Secrets hold. */
export const someSecrets: HighAvailabilitySecrets = {
  token: 'a-token-that-is-secret',
  files: [
    { path: 'config.yaml', content: 'aws: {profile: lab}\n' },
    { path: 'ssh/id', content: 'PRIVATE KEY\n', once: true },
  ],
  environment: { SVC_DATABASE: 'postgres://svc:hunter2@db/svc' },
};

/** What a cluster says of its groups of objects. */
export const clusterGroups = JSON.stringify({ groups: [{ name: 'policy', versions: [{ groupVersion: 'policy/v1' }] }] });

/** A home that is to have its controller in a cluster, which does not exist but for what a fake remembers. */
export async function withCluster(
  use: (deps: HighAvailabilityDeps, api: FakeKubeApi) => Promise<void>,
  controller: Partial<ControllerConfig> = {},
): Promise<void> {
  await withTempHome(async (home) => {
    const api = new FakeKubeApi();
    api.texts.set('/apis', clusterGroups);
    api.put('/api/v1/namespaces/kube-system', { metadata: { name: 'kube-system' } });
    await use(depsIn(home, api, controller), api);
  });
}

/** The same home by itself: `api` is what its cluster answers with. */
export function depsIn(home: string, api: FakeKubeApi, controller: Partial<ControllerConfig> = {}): HighAvailabilityDeps {
  const settings = { ...defaultConfig.serve.controller, highAvailability: true, image: 'svc:1', ...controller };
  const kubernetes = { ...defaultConfig.kubernetes, allowedContexts: ['prod'], namespace: 'serving' };
  const kubeconfig = join(home, 'kubeconfig');
  const contexts = {
    contexts: [{ name: 'prod', context: { cluster: 'c', user: 'u' } }],
    clusters: [{ name: 'c', cluster: { server: 'https://10.0.0.1:6443' } }],
  };
  writeFileSync(kubeconfig, JSON.stringify({ ...contexts, users: [{ name: 'u', user: { token: 't' } }], 'current-context': 'prod' }));
  process.env['KUBECONFIG'] = kubeconfig;
  const aws = aStubPlace({
    name: 'aws',
    credentials: async () => ({
      summary: 'keys of the profile lab',
      files: [{ path: 'aws/credentials', content: 'AKIA-SECRET' }],
      environment: { AWS_PROFILE: 'lab' },
    }),
  });
  return {
    paths: homePaths(home, 1000),
    places: placesOf(aws, aStubPlace({ name: 'kubernetes' }), aStubPlace({ name: 'local' })),
    config: async () => ({ ...defaultConfig, serve: { controller: settings }, kubernetes }),
    clock: systemClock,
    signal: new AbortController().signal,
    onStep: () => undefined,
    openApi: () => api,
  };
}

/** What it knows of its controller before anything was made. */
export const aClustersRecord = (change: Partial<ControllerRecord> = {}): ControllerRecord =>
  aControllerRecord({ cluster: { context: 'prod', namespace: 'serving' }, ...change });

/** Paths of two of the objects. */
export const leasePath = '/apis/coordination.k8s.io/v1/namespaces/serving/leases/svc-controller';
export const anchorPath = '/api/v1/namespaces/serving/configmaps/svc-controller';
/** Paths of what was applied, in order. */
export const applied = (api: FakeKubeApi): readonly string[] =>
  api.asked.flatMap((line) => (line.startsWith('apply ') ? [line.slice(6)] : []));
