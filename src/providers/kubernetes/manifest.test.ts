import { expect, test } from 'vitest';
import { aMachineSpec, anOffer } from '../../../test/support/builders.ts';
import { defaultConfig, type KubernetesContextConfig } from '../../domain/config.ts';
import { kubernetesContextConfig } from '../../domain/kubernetes/kubernetes-context.ts';
import type { MachineSpec, Offer } from '../provider.ts';
import { anchorManifest, podManifest, provisionTimeoutSeconds, type PodPlan } from './manifest.ts';
import { machineIdOf, podBase, podNames, readMachineId, tagLabel } from './names.ts';
import { nodeDemands } from './nodes/node-demands.ts';
import { nodeFacts } from './nodes/node-facts.ts';

const plain = kubernetesContextConfig(defaultConfig.kubernetes, 'a');
const tags = { 'svc-service': 'chat', 'svc-service-key': 'abcd', 'svc-replica': '3', 'svc-key': 'abcd-3' };

function plan(
  {
    config = {},
    offer = {},
    spec = {},
  }: { config?: Partial<KubernetesContextConfig>; offer?: Partial<Offer>; spec?: Partial<MachineSpec> } = {},
  nodes: Parameters<typeof nodeDemands>[2] = [],
): PodPlan {
  const whole = { ...plain, ...config };
  const offered = anOffer({ provider: 'kubernetes', region: 'a', instanceType: '2CPU--4GB', cpus: 2, memoryGb: 4, ...offer });
  return {
    config: whole,
    offer: offered,
    spec: aMachineSpec({ tags, ports: [8080], ...spec }),
    demands: nodeDemands(offered, whole, nodes),
    namespace: 'default',
    base: 'svc-chat-3-x',
    name: 'svc-chat-3-x',
    rank: 0,
    image: 'python:3',
    command: ['/bin/sh', '-c', 'wait'],
    hasReadinessGate: false,
    anchor: { name: 'svc-abcd', uid: 'u1' },
  };
}

const main = { name: 'main', image: 'python:3', command: ['/bin/sh', '-c', 'wait'] };

test('a plain pod has the requested resources, its labels and no API token', () => {
  expect(podManifest(plan())).toMatchObject({
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      name: 'svc-chat-3-x',
      namespace: 'default',
      labels: { ...tags, 'svc-machine': 'svc-chat-3-x', 'svc-rank': '0', 'svc-owned-by': 'abcd' },
      annotations: { 'svc-tags': JSON.stringify(tags), 'svc-nodes': '1', 'svc-provision-timeout': '10' },
      ownerReferences: [{ apiVersion: 'v1', kind: 'ConfigMap', name: 'svc-abcd', uid: 'u1' }],
    },
    spec: {
      restartPolicy: 'Never',
      automountServiceAccountToken: false,
      securityContext: { seccompProfile: { type: 'RuntimeDefault' } },
      containers: [
        {
          ...main,
          resources: { requests: { cpu: '2000m', memory: '4096Mi' }, limits: { memory: '4096Mi' } },
          ports: [{ containerPort: 8080, protocol: 'TCP' }],
          securityContext: { allowPrivilegeEscalation: false },
          volumeMounts: [{ name: 'svc', mountPath: '/svc' }],
        },
      ],
      volumes: [{ name: 'svc', emptyDir: {} }],
    },
  });
});

test('the readiness gate joins those of a pod_config', () => {
  const podConfig = { spec: { readinessGates: [{ conditionType: 'example.com/ready' }] } };
  expect(podManifest({ ...plan({ config: { podConfig } }), hasReadinessGate: true })).toMatchObject({
    spec: { readinessGates: [{ conditionType: 'example.com/ready' }, { conditionType: 'svc.dev/ready' }] },
  });
  expect(podManifest(plan())['spec']).not.toHaveProperty('readinessGates');
});

test('default memory is a request, not a limit', () => {
  const pod = podManifest(plan({ offer: { instanceType: '1CPU--2GB+' } }));
  expect(pod).toMatchObject({ spec: { containers: [{ resources: { requests: { cpu: '1000m', memory: '2048Mi' } } }] } });
  expect(JSON.stringify(pod)).not.toContain('limits');
});

test('a GPU pod has the GPU count, node label, shared memory and toleration', () => {
  const nodes = nodeFacts(
    [
      {
        metadata: { name: 'n', uid: 'n', resourceVersion: '1', labels: { 'nvidia.com/gpu.product': 'NVIDIA-L4' } },
        status: { allocatable: { 'nvidia.com/gpu': '4' } },
      },
    ],
    [],
  );
  const pod = podManifest(plan({ offer: { accelerator: { name: 'L4', count: 2 } } }, nodes));
  expect(pod).toMatchObject({
    spec: {
      affinity: {
        nodeAffinity: {
          requiredDuringSchedulingIgnoredDuringExecution: {
            nodeSelectorTerms: [{ matchExpressions: [{ key: 'nvidia.com/gpu.product', operator: 'In', values: ['NVIDIA-L4'] }] }],
          },
        },
      },
      containers: [{ resources: { requests: { 'nvidia.com/gpu': '2' }, limits: { 'nvidia.com/gpu': '2' } } }],
      volumes: [{ name: 'svc' }, { name: 'svc-shm', emptyDir: { medium: 'Memory' } }],
    },
  });
  expect(JSON.stringify(pod)).toContain('{"key":"nvidia.com/gpu","operator":"Exists"}');
});

test("GPU and spot nodes of an autoscaler are selected by its cloud's labels", () => {
  const { demands } = plan({ config: { autoscaler: 'gke' }, offer: { accelerator: { name: 'A100-80GB', count: 1 } } });
  expect(demands.gpu?.anyOf).toEqual([{ key: 'cloud.google.com/gke-accelerator', values: ['nvidia-a100-80gb'] }]);
  const spot = podManifest(plan({ config: { autoscaler: 'karpenter' }, offer: { accelerator: { name: 'L4', count: 1 }, spot: true } }));
  expect(JSON.stringify(spot)).toContain('"key":"karpenter.k8s.aws/instance-gpu-name","operator":"In","values":["l4"]');
  expect(JSON.stringify(spot)).toContain('{"key":"karpenter.sh/capacity-type","operator":"Equal","value":"spot"}');
});

const gkeNode = (labels: Readonly<Record<string, string>>) => ({
  metadata: { name: 'n', uid: 'n', resourceVersion: '1', labels: { 'cloud.google.com/gke-accelerator': 'nvidia-tesla-a100', ...labels } },
  status: { allocatable: { 'nvidia.com/gpu': '7' } },
});

test("a partial pod's node affinity applies only among nodes with the right GPUs", () => {
  const zones = [{ matchExpressions: [{ key: 'zone', operator: 'In', values: ['a'] }] }, { matchFields: [{ key: 'metadata.name' }] }];
  const required = { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: zones } };
  const podConfig = { spec: { affinity: { nodeAffinity: required } } };
  const ofTask = { kubernetes: { podConfig } };
  const gpu = { key: 'cloud.google.com/gke-accelerator', operator: 'In', values: ['nvidia-l4'] };
  const whole = { key: 'cloud.google.com/gke-gpu-partition-size', operator: 'DoesNotExist' };
  const accelerator = { name: 'L4', count: 1 };
  for (const input of [{ config: { autoscaler: 'gke', podConfig } }, { config: { autoscaler: 'gke' }, spec: { providerConfig: ofTask } }]) {
    expect(podManifest(plan({ ...input, offer: { accelerator } }))['spec']).toMatchObject({
      affinity: {
        nodeAffinity: {
          requiredDuringSchedulingIgnoredDuringExecution: {
            nodeSelectorTerms: [
              { matchExpressions: [gpu, whole, { key: 'zone' }] },
              { matchExpressions: [gpu, whole], matchFields: [{ key: 'metadata.name' }] },
            ],
          },
        },
      },
    });
  }
  // Nor can the patch remove it.
  const without = podManifest(plan({ config: { autoscaler: 'gke', podConfig: { spec: { affinity: null } } }, offer: { accelerator } }));
  expect(JSON.stringify(without)).toContain(JSON.stringify([gpu, whole]));
  expect(podManifest(plan({ config: { podConfig } }))['spec']).toMatchObject({ affinity: { nodeAffinity: required } });
});

test('on GKE, whole GPUs exclude partitioned nodes, and parts require them', () => {
  const parted = gkeNode({ 'cloud.google.com/gke-gpu-partition-size': '1g.5gb' });
  const expressions = (name: string) => {
    const nodes = nodeFacts([gkeNode({}), parted], []);
    return JSON.stringify(podManifest(plan({ offer: { accelerator: { name, count: 1 } } }, nodes)));
  };
  expect(expressions('A100')).toContain('{"key":"cloud.google.com/gke-gpu-partition-size","operator":"DoesNotExist"}');
  expect(expressions('A100-MIG-1g.5gb')).toContain('{"key":"cloud.google.com/gke-gpu-partition-size","operator":"In","values":["1g.5gb"]}');
});

test('AMD GPUs that no node has yet use the resource amd.com/gpu', () => {
  const { demands } = plan({ config: { autoscaler: 'karpenter' }, offer: { accelerator: { name: 'MI300X', count: 1 } } });
  expect(demands.gpu?.resource).toBe('amd.com/gpu');
});

test("the configuration's pod settings are in the manifest", () => {
  const config = {
    serviceAccount: 'reader',
    imagePullSecrets: ['registry'],
    nodeSelector: { pool: 'a' },
    tolerations: [{ key: 'dedicated', operator: 'Exists' }],
    labels: { team: 'ml', bad: 'no label!' },
    annotations: { note: 'hello there' },
  };
  expect(podManifest(plan({ config }))).toMatchObject({
    metadata: { labels: { team: 'ml' }, annotations: { note: 'hello there' } },
    spec: { serviceAccountName: 'reader', imagePullSecrets: [{ name: 'registry' }], nodeSelector: { pool: 'a' } },
  });
});

test("labels of the user or the configuration never replace svc's own labels", () => {
  const forged = { 'svc-role': 'balancer', 'svc-serving': 'true', 'svc-owner': 'another' };
  const { metadata } = podManifest(plan({ config: { labels: { ...forged, team: 'ml' } }, spec: { labels: forged } }));
  expect(metadata['labels']).toEqual({ ...tags, team: 'ml', 'svc-machine': 'svc-chat-3-x', 'svc-rank': '0', 'svc-owned-by': 'abcd' });
  expect(metadata).toMatchObject({ annotations: { 'svc-labels': JSON.stringify(forged) } });
});

test("a user's invalid labels become annotations, and svc's own labels stay", () => {
  const labels = { team: 'ml', note: 'any text, also this', 'no name!': 'x', 'svc-key': 'mine' };
  const { metadata } = podManifest(plan({ spec: { labels } }));
  expect(metadata).toMatchObject({
    labels: { team: 'ml', 'svc-key': 'abcd-3' },
    annotations: { note: 'any text, also this', 'svc-labels': '{"no name!":"x","svc-key":"mine"}' },
  });
});

test('volumes are PersistentVolumeClaims of the namespace', () => {
  expect(podManifest(plan({ spec: { volumes: { '/data': 'models' } } }))).toMatchObject({
    spec: {
      containers: [{ volumeMounts: [{ name: 'svc' }, { name: 'volume-0', mountPath: '/data' }] }],
      volumes: [{ name: 'svc' }, { name: 'volume-0', persistentVolumeClaim: { claimName: 'models' } }],
    },
  });
});

test("partial pods are merged, the task's last, and svc's own labels stay", () => {
  const pod = podManifest(
    plan({
      config: {
        podConfig: { metadata: { labels: { team: 'ml' } }, spec: { priorityClassName: 'low', securityContext: { runAsUser: 1000 } } },
      },
      spec: {
        providerConfig: {
          kubernetes: {
            podConfig: {
              metadata: null,
              spec: { priorityClassName: 'high', containers: [{ imagePullPolicy: 'Always' }, { name: 'side', image: 'b' }] },
            },
          },
        },
      },
    }),
  );
  expect(pod).toMatchObject({
    metadata: { labels: { 'svc-machine': 'svc-chat-3-x' } },
    spec: {
      priorityClassName: 'high',
      securityContext: { runAsUser: 1000, fsGroup: 1000, seccompProfile: { type: 'RuntimeDefault' } },
      containers: [{ ...main, imagePullPolicy: 'Always' }, { name: 'side' }],
    },
  });
});

test("a service's pods prefer separate nodes and zones; a group's pods only separate nodes", () => {
  const constraint = { maxSkew: 1, whenUnsatisfiable: 'ScheduleAnyway', labelSelector: { matchLabels: { 'svc-service-key': 'abcd' } } };
  expect(podManifest(plan())['spec']).toMatchObject({
    topologySpreadConstraints: [
      { ...constraint, topologyKey: 'kubernetes.io/hostname' },
      { ...constraint, topologyKey: 'topology.kubernetes.io/zone' },
    ],
  });
  for (const spec of [{ nodes: 2 }, { tags: { 'svc-cluster': 'box' } }]) {
    expect(podManifest(plan({ spec }))['spec']).not.toHaveProperty('topologySpreadConstraints');
  }
});

test("a partial pod's spread constraints replace svc's, and an empty list removes them", () => {
  const own = { maxSkew: 2, topologyKey: 'topology.kubernetes.io/zone', whenUnsatisfiable: 'ScheduleAnyway' };
  for (const topologySpreadConstraints of [[own], []]) {
    const pod = podManifest(plan({ config: { podConfig: { spec: { topologySpreadConstraints } } } }));
    expect(pod['spec']).toHaveProperty('topologySpreadConstraints', topologySpreadConstraints);
  }
});

const annotations = (input: Parameters<typeof plan>[0]) => podManifest(plan(input)).metadata['annotations'];

test('autoscalers keep the node of a pod, unless it is spot or configured otherwise', () => {
  const evict = 'cluster-autoscaler.kubernetes.io/safe-to-evict';
  const disrupt = 'karpenter.sh/do-not-disrupt';
  expect(annotations({})).toMatchObject({ [evict]: 'false', [disrupt]: 'true' });
  expect(annotations({ config: { annotations: { [evict]: 'true' } } })).toMatchObject({ [evict]: 'true', [disrupt]: 'true' });
  const podConfig = { metadata: { annotations: { [disrupt]: null } } };
  expect(annotations({ config: { podConfig } })).not.toHaveProperty([disrupt]);
  const spot = annotations({ offer: { spot: true } });
  expect(spot).not.toHaveProperty([evict]);
  expect(spot).not.toHaveProperty([disrupt]);
});

test('tolerations of a partial pod appear once', () => {
  const pod = podManifest(plan({ config: { podConfig: { spec: { tolerations: [{ key: 'mine', operator: 'Exists' }] } } } }));
  expect(JSON.stringify(pod).split('"mine"')).toHaveLength(2);
});

test("the anchor has the labels that all of an owner's machines share", () => {
  expect(anchorManifest(plan())).toMatchObject({
    kind: 'ConfigMap',
    metadata: { name: 'svc-abcd', labels: { 'svc-service': 'chat', 'svc-service-key': 'abcd', 'svc-owned-by': 'abcd' } },
  });
  expect(JSON.stringify(anchorManifest(plan()))).not.toContain('svc-replica');
  expect(anchorManifest(plan({ spec: { tags: { 'svc-cluster': 'box' } } })).metadata.name).toBe('svc-chat-3-x');
});

test('the wait for room comes from task, configuration or autoscaler, in this order', () => {
  const spec = { providerConfig: { kubernetes: { provisionTimeoutSeconds: 5 } } };
  expect(provisionTimeoutSeconds({ ...plain, provisionTimeoutSeconds: 60 }, spec)).toBe(5);
  expect(provisionTimeoutSeconds({ ...plain, provisionTimeoutSeconds: 60 }, { providerConfig: {} })).toBe(60);
  expect(provisionTimeoutSeconds({ ...plain, autoscaler: 'gke' }, { providerConfig: {} })).toBe(600);
});

test('pod names are valid and unique for any service name, and ids parse back', () => {
  const long = podBase({ 'svc-service': `My_Service.${'x'.repeat(60)}`, 'svc-replica': '12' }, 'k', 16);
  expect(podNames(long)).toHaveLength(16);
  for (const name of podNames(long)) expect(name).toMatch(/^[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])$/);
  expect(podNames(podBase({ 'svc-service': 'chat-x2' }, 'k', 1))).toHaveLength(1);
  expect(podBase({ 'svc-service': 'a' }, 'k1', 1)).not.toBe(podBase({ 'svc-service': 'a' }, 'k2', 1));
  const ref = { context: 'arn:aws:eks:us-east-1:1:cluster/prod', namespace: 'default', base: 'svc-a-1' };
  expect(readMachineId(machineIdOf(ref))).toEqual(ref);
  expect(readMachineId('0123456789abcdef')).toBeUndefined();
  expect(tagLabel('a/b')).toMatch(/^x[0-9a-f]{16}$/);
});
