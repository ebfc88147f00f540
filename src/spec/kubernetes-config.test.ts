import { expect, test } from 'vitest';
import { problemLine } from '../../test/support/task-text.ts';
import { defaultConfig } from '../domain/config.ts';
import { kubernetesContextConfig, usableContexts } from '../domain/kubernetes/kubernetes-context.ts';
import { SvcError } from '../shared/errors.ts';
import { parseConfig } from './load-config.ts';

const problemsOf = (text: string): readonly string[] => {
  try {
    parseConfig(text, 'config.yaml');
  } catch (error: unknown) {
    if (error instanceof SvcError && error.code === 'SVC_INVALID_CONFIG') return error.problems.map(problemLine);
    throw error;
  }
  return [];
};

test("all Kubernetes settings are read under SkyPilot's names", () => {
  const text = `
kubernetes:
  allowed_contexts: [east, west]
  namespace: serving
  image: docker:registry.example/base:1
  image_pull_secrets: [registry]
  remote_identity: replicas
  node_selector: {pool: gpu}
  tolerations: [{key: dedicated, operator: Exists, effect: NoSchedule}]
  pod_config:
    metadata: {annotations: {team: ml}}
    spec: {runtimeClassName: nvidia}
  custom_metadata: {labels: {team: ml}, annotations: {note: hello}}
  autoscaler: GKE
  provision_timeout: 300
  reach: node-port
  price: {cpu: 0.03, memory_gb: 0.004, accelerators: {L4: 0.6}}
  high_availability: {storage_class_name: fast}
  context_configs:
    west: {namespace: other, autoscaler: false, provision_timeout: -1, remote_identity: SERVICE_ACCOUNT}
`;
  const { kubernetes } = parseConfig(text, 'c');
  expect(kubernetes).toEqual({
    allowedContexts: ['east', 'west'],
    namespace: 'serving',
    image: 'registry.example/base:1',
    imagePullSecrets: ['registry'],
    serviceAccount: 'replicas',
    nodeSelector: { pool: 'gpu' },
    tolerations: [{ key: 'dedicated', operator: 'Exists', effect: 'NoSchedule' }],
    podConfig: { metadata: { annotations: { team: 'ml' } }, spec: { runtimeClassName: 'nvidia' } },
    labels: { team: 'ml' },
    annotations: { note: 'hello' },
    autoscaler: 'gke',
    provisionTimeoutSeconds: 300,
    reach: 'node-port',
    price: { cpu: 0.03, memoryGb: 0.004, accelerators: { L4: 0.6 } },
    storageClass: 'fast',
    contexts: { west: { namespace: 'other', autoscaler: undefined, provisionTimeoutSeconds: 86_400, serviceAccount: undefined } },
  });
  expect(kubernetesContextConfig(kubernetes, 'west')).toMatchObject({
    namespace: 'other',
    autoscaler: undefined,
    serviceAccount: undefined,
    image: 'registry.example/base:1',
  });
  expect(kubernetesContextConfig(kubernetes, 'east')).toMatchObject({ namespace: 'serving', autoscaler: 'gke' });
});

test('an empty section gives the defaults, and true means any autoscaler', () => {
  expect(parseConfig('kubernetes:\n', 'c').kubernetes).toEqual(defaultConfig.kubernetes);
  expect(parseConfig('kubernetes: {autoscaler: true, allowed_contexts: all}\n', 'c').kubernetes).toMatchObject({
    autoscaler: 'generic',
    allowedContexts: 'all',
  });
});

test('settings of a controller with standbys are read', () => {
  const text =
    'serve: {controller: {database: "postgres://svc:secret@db/svc", image: "docker:svc:1", balancers: 3, endpoint_service: loadbalancer}}';
  expect(parseConfig(text, 'c').serve.controller).toMatchObject({
    database: 'postgres://svc:secret@db/svc',
    image: 'svc:1',
    balancers: 3,
    endpointService: 'LoadBalancer',
  });
});

test.each([
  ['kubernetes: {namespace: My_Space}', /is not the name of a namespace/],
  ['kubernetes: {allowed_context: [a]}', /unknown field 'allowed_context'.*Did you mean 'allowed_contexts'/],
  ['kubernetes: {reach: nodeport}', /Did you mean 'node-port'/],
  ['kubernetes: {tolerations: [{key: a, operater: Exists}]}', /Did you mean 'operator'/],
  ['kubernetes: {price: {cpu: -1}}', /at least 0/],
  ['kubernetes: {context_configs: {a: {allowed_contexts: all}}}', /unknown field 'allowed_contexts'/],
  ['kubernetes: {pod_config: {spec: {restartPolicy: Always}}}', /pod_config\.spec\.restartPolicy: must be Never/],
  ['kubernetes: {context_configs: {a: {pod_config: {spek: {}}}}}', /context_configs\.a\.pod_config: a pod has no field 'spek'.*'spec'/],
  ['serve: {controller: {balancers: 0}}', /at least 1/],
  ['serve: {controller: {endpoint_service: Ingress}}', /must be one of ClusterIP, NodePort or LoadBalancer/],
])('%s is rejected with its position and the reason', (text, said) => {
  expect(problemsOf(text).join('\n')).toMatch(said);
});

test('no shown problem contains the database password', () => {
  const text = 'serve: {controller: {database: "mysql://svc:hunter2@db/svc"}}\n';
  let said = '';
  try {
    parseConfig(text, 'c');
  } catch (error: unknown) {
    said = JSON.stringify(error instanceof SvcError ? error.problems : []);
  }
  expect(said).toContain('is not the address of a PostgreSQL database');
  expect(said).not.toContain('hunter2');
});

test('without allowed_contexts, the current context and an explicitly named one are usable', () => {
  const kubeconfig = { names: ['a', 'b', 'c'], current: 'b' };
  expect(usableContexts({ allowedContexts: undefined }, kubeconfig)).toEqual(['b']);
  expect(usableContexts({ allowedContexts: undefined }, kubeconfig, 'c')).toEqual(['b', 'c']);
  expect(usableContexts({ allowedContexts: ['c', 'x'] }, kubeconfig, 'a')).toEqual(['c']);
  expect(usableContexts({ allowedContexts: 'all' }, kubeconfig)).toEqual(['a', 'b', 'c']);
});
