import { expect, test } from 'vitest';
import { aDesign, someSecrets } from '../../../test/support/high-availability.ts';
import { isObject } from '../../shared/json.ts';
import { manifests } from './manifests.ts';
import type { HighAvailabilityDesign } from './design.ts';

const owner = { apiVersion: 'v1', kind: 'ConfigMap', name: 'svc-controller', uid: 'u-1' } as const;

/** A value deep in an object, by a path such as `spec.template.spec`. */
function at(value: unknown, path: string): unknown {
  return path.split('.').reduce<unknown>((inner, key) => {
    if (Array.isArray(inner)) return inner[Number(key)];
    return isObject(inner) ? inner[key] : undefined;
  }, value);
}

function object(kind: string, name: string, change: Partial<HighAvailabilityDesign> = {}): unknown {
  const found = manifests(aDesign(change), someSecrets, owner).find((one) => one.kind === kind && one.metadata.name === name);
  if (found === undefined) throw new Error(`no ${kind} ${name}`);
  return found;
}

const named = (change: Partial<HighAvailabilityDesign> = {}): readonly string[] =>
  manifests(aDesign(change), someSecrets, owner).map(({ kind, metadata }) => `${kind} ${metadata.name}`);

test('with SQLite there is one controller with its own volume', () => {
  const deployment = object('Deployment', 'svc-controller', { storageClass: 'fast', diskGb: 30 });
  expect(at(deployment, 'spec.replicas')).toBe(1);
  expect(at(deployment, 'spec.strategy')).toEqual({ type: 'Recreate' });
  expect(at(deployment, 'spec.template.spec.volumes.0')).toEqual({ name: 'home', persistentVolumeClaim: { claimName: 'svc-controller' } });
  const volume = object('PersistentVolumeClaim', 'svc-controller', { storageClass: 'fast', diskGb: 30 });
  expect(at(volume, 'spec')).toEqual({
    accessModes: ['ReadWriteOnce'],
    storageClassName: 'fast',
    resources: { requests: { storage: '30G' } },
  });
});

test('with PostgreSQL there are two controllers on different nodes, and no volume', () => {
  const deployment = object('Deployment', 'svc-controller', { database: 'postgresql' });
  expect(at(deployment, 'spec.replicas')).toBe(2);
  expect(at(deployment, 'spec.template.spec.volumes.0')).toEqual({ name: 'home', emptyDir: {} });
  const spread = at(
    deployment,
    'spec.template.spec.affinity.podAntiAffinity.preferredDuringSchedulingIgnoredDuringExecution.0.podAffinityTerm',
  );
  expect(spread).toEqual({ labelSelector: { matchLabels: { 'svc-role': 'controller' } }, topologyKey: 'kubernetes.io/hostname' });
  expect(named({ database: 'postgresql' })).not.toContain('PersistentVolumeClaim svc-controller');
});

test("the controller's pod gets the configured resources", () => {
  const resources = at(object('Deployment', 'svc-controller', { cpus: 1.5, memoryGb: 3 }), 'spec.template.spec.containers.0.resources');
  expect(resources).toEqual({ requests: { cpu: '1500m', memory: '3G' }, limits: { memory: '3G' } });
  const limitOf = (change: Parameters<typeof object>[2]): unknown => {
    const env = at(object('Deployment', 'svc-controller', change), 'spec.template.spec.containers.0.env');
    return Array.isArray(env) ? env.find(({ name }) => name === 'SVC_SERVICE_LIMIT')?.value : undefined;
  };
  expect([limitOf({ cpus: 1.5, memoryGb: 3 }), limitOf({ cpus: 2 }), limitOf({})]).toEqual(['3', '8', undefined]);
});

test('balancers are spread over nodes and zones, and evicted one at a time', () => {
  const deployment = object('Deployment', 'svc-balancer', { balancers: 3 });
  expect(at(deployment, 'spec.replicas')).toBe(3);
  expect(at(deployment, 'spec.template.spec.topologySpreadConstraints.0.topologyKey')).toBe('kubernetes.io/hostname');
  expect(at(deployment, 'spec.template.spec.topologySpreadConstraints.1.topologyKey')).toBe('topology.kubernetes.io/zone');
  expect(at(object('PodDisruptionBudget', 'svc-balancer'), 'spec.maxUnavailable')).toBe(1);
});

test.each(['policy/v1', 'policy/v1beta1'] as const)(
  'disruption budgets have the version of the Kubernetes cluster: %s',
  (policyVersion) => {
    expect(at(object('PodDisruptionBudget', 'svc-controller', { policyVersion }), 'apiVersion')).toBe(policyVersion);
  },
);

test('the Service forwards all endpoint ports under the same numbers', () => {
  const ports = at(object('Service', 'svc-endpoints'), 'spec.ports');
  expect(ports).toHaveLength(20);
  expect(at(ports, '0')).toEqual({ name: 'endpoint-30001', protocol: 'TCP', port: 30_001, targetPort: 30_001 });
  expect(at(object('Service', 'svc-endpoints', { endpointService: 'NodePort' }), 'spec.ports.19.nodePort')).toBe(30_020);
  expect(at(object('Service', 'svc-endpoints'), 'spec.selector')).toEqual({ 'svc-role': 'balancer', 'svc-serving': 'true' });
  expect(at(object('Service', 'svc-endpoints'), 'spec.publishNotReadyAddresses')).toBe(true);
  expect(at(object('Deployment', 'svc-balancer'), 'spec.template.metadata.labels.svc-serving')).toBe('false');
});

/** Violations of the `restricted` Pod Security Standard, for the fields that our pods have. */
function restrictions(pod: unknown): readonly string[] {
  const problems: string[] = [];
  const need = (isMet: boolean, what: string): void => void (isMet || problems.push(what));
  need(at(pod, 'securityContext.runAsNonRoot') === true, 'runAsNonRoot');
  need(Number(at(pod, 'securityContext.runAsUser')) > 0, 'runAsUser');
  need(at(pod, 'securityContext.seccompProfile.type') === 'RuntimeDefault', 'seccompProfile');
  for (const field of ['hostNetwork', 'hostPID', 'hostIPC']) need(at(pod, field) === undefined, field);
  const volumes = at(pod, 'volumes');
  const allowed = ['configMap', 'downwardAPI', 'emptyDir', 'persistentVolumeClaim', 'secret'];
  for (const volume of Array.isArray(volumes) ? volumes : [])
    need(
      Object.keys(volume).every((key) => key === 'name' || allowed.includes(key)),
      'volumes',
    );
  for (const list of ['initContainers', 'containers']) {
    const containers = at(pod, list);
    for (const container of Array.isArray(containers) ? containers : []) {
      need(at(container, 'securityContext.allowPrivilegeEscalation') === false, `${list} allowPrivilegeEscalation`);
      need(at(container, 'securityContext.readOnlyRootFilesystem') === true, `${list} readOnlyRootFilesystem`);
      need(String(at(container, 'securityContext.capabilities.drop')) === 'ALL', `${list} capabilities`);
      need(at(container, 'securityContext.privileged') === undefined, `${list} privileged`);
      need(at(container, 'resources.requests.memory') !== undefined, `${list} requests`);
    }
  }
  return problems;
}

test.each(['svc-controller', 'svc-balancer'])('the pods of %s satisfy the restricted Pod Security Standard', (name) => {
  expect(restrictions(at(object('Deployment', name), 'spec.template.spec'))).toEqual([]);
});

test('every object except the anchor has an owner, or the key in its name', () => {
  const free = manifests(aDesign(), someSecrets, owner).filter(({ metadata }) => metadata['ownerReferences'] === undefined);
  expect(free.map(({ kind, metadata }) => `${kind} ${metadata.name}`)).toEqual([
    'ConfigMap svc-controller',
    'ClusterRole svc-controller-c0ffee0123456789',
    'ClusterRoleBinding svc-controller-c0ffee0123456789',
  ]);
});

test("every object has the controller's key and the user's labels", () => {
  for (const { metadata } of manifests(
    aDesign({ labels: { team: 'ml' }, annotations: { contact: 'ml@example.org' } }),
    someSecrets,
    owner,
  )) {
    expect(metadata['labels']).toMatchObject({ team: 'ml', 'svc-controller': 'c0ffee0123456789' });
    expect(metadata['annotations']).toEqual({ contact: 'ml@example.org' });
  }
});

test('each role has only the permissions that it needs; balancers have none', () => {
  expect(at(object('Role', 'svc-controller'), 'rules')).toEqual([
    { apiGroups: ['coordination.k8s.io'], resources: ['leases'], verbs: ['create'] },
    { apiGroups: ['coordination.k8s.io'], resources: ['leases'], resourceNames: ['svc-controller'], verbs: ['get', 'update'] },
    ...aDesign().replicaRules,
  ]);
  expect(at(object('Role', 'svc-health-checker'), 'rules')).toEqual([
    { apiGroups: [''], resources: ['pods'], verbs: ['list', 'watch', 'patch'] },
  ]);
  // The Role stays: an upgrade must remove the permissions that older versions gave it.
  expect(at(object('Role', 'svc-balancer'), 'rules')).toEqual([]);
  const inCluster = manifests(aDesign(), someSecrets, owner).filter(({ kind }) => kind === 'ClusterRole');
  expect(JSON.stringify(inCluster)).not.toMatch(/"(\*|secrets|create|delete|patch|update)"/);
});

test('secrets are printed only on request, and only in Secrets', () => {
  const printed = JSON.stringify(manifests(aDesign(), undefined, undefined));
  expect(printed).not.toContain('"Secret"');
  expect(printed).not.toContain('ownerReferences');
  const rest = JSON.stringify(manifests(aDesign(), someSecrets, owner).filter(({ kind }) => kind !== 'Secret'));
  for (const secret of ['hunter2', 'PRIVATE KEY', 'a-token-that-is-secret', 'profile'].flatMap((text) => [
    text,
    Buffer.from(text).toString('base64'),
  ]))
    expect(rest).not.toContain(secret);
});

test('balancers get no credentials except the shared token', () => {
  expect(at(object('Deployment', 'svc-balancer'), 'spec.template.spec.automountServiceAccountToken')).toBe(false);
  const checker = JSON.stringify(object('Deployment', 'svc-health-checker'));
  expect(checker).not.toContain('secret');
  expect(checker).not.toContain('containerPort');
  const text = JSON.stringify(object('Deployment', 'svc-balancer'));
  expect(text).toContain('svc-control-token');
  expect(text).not.toContain('svc-controller-files');
  expect(text).not.toContain('svc-controller-environment');
});

test('equal designs give equal objects; changed settings restart the controller', () => {
  expect(manifests(aDesign(), someSecrets, owner)).toEqual(manifests(aDesign(), someSecrets, owner));
  const digest = (environment: Readonly<Record<string, string>>): unknown =>
    at(
      manifests(aDesign(), { ...someSecrets, environment }, owner).find(({ kind }) => kind === 'Deployment'),
      'spec.template.metadata.annotations.svc-settings',
    );
  expect(digest({ A: '1' })).not.toBe(digest({ A: '2' }));
});

test("the controller's kubeconfig uses the user's name of the context", () => {
  const data = at(object('ConfigMap', 'svc-controller'), 'data');
  expect(JSON.parse(String(at(data, 'kubeconfig')))).toMatchObject({
    'current-context': 'prod',
    contexts: [{ name: 'prod', context: { namespace: 'serving' } }],
  });
  expect(JSON.parse(String(isObject(data) ? data['host.json'] : undefined))).toMatchObject({
    key: 'c0ffee0123456789',
    publicHost: 'svc-endpoints.serving.svc',
    machine: { provider: 'kubernetes', region: 'prod' },
    whenIdle: 'exit',
    balancers: { namespace: 'serving', port: 30_000, tokenFile: '/etc/svc/token/token' },
  });
});
