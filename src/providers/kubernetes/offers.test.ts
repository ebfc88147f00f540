import { expect, test } from 'vitest';
import { defaultConfig, type KubernetesContextConfig } from '../../domain/config.ts';
import { kubernetesContextConfig } from '../../domain/kubernetes/kubernetes-context.ts';
import type { Resources } from '../../domain/task.ts';
import { someResources } from '../../../test/support/builders.ts';
import { acceleratorOfLabel } from './nodes/gpu-labels.ts';
import { countedNode, countedPod, nodeFacts, podLoad, type Node } from './nodes/node-facts.ts';
import type { Pod } from '../../kubernetes/pod.ts';
import { kubernetesOffers, type OfferingContext } from './offers.ts';
import { forTask } from './pod-settings.ts';

const plain = kubernetesContextConfig(defaultConfig.kubernetes, 'a');

interface NodeOptions {
  readonly labels?: Readonly<Record<string, string>>;
  readonly allocatable?: Readonly<Record<string, string>>;
  readonly ready?: string;
  readonly spec?: Node['spec'];
}

function node(name: string, { labels = {}, allocatable = {}, ready = 'True', spec = {} }: NodeOptions = {}): Node {
  return {
    metadata: { name, uid: name, resourceVersion: '1', labels },
    spec,
    status: {
      allocatable: { cpu: '4', memory: '16Gi', pods: '110', ...allocatable },
      conditions: [{ type: 'Ready', status: ready }],
    },
  };
}

function pod(on: string, requests: Readonly<Record<string, string>>, phase = 'Running'): Pod {
  return {
    metadata: { name: 'p', uid: 'p', resourceVersion: '1' },
    spec: { nodeName: on, containers: [{ resources: { requests } }] },
    status: { phase },
  };
}

function cluster(nodes: readonly Node[], pods: readonly Pod[] = [], config: Partial<KubernetesContextConfig> = {}): OfferingContext {
  return {
    context: 'a',
    config: { ...plain, ...config },
    state: {
      nodes: nodeFacts(
        nodes,
        pods.flatMap((one) => podLoad(one) ?? []),
      ),
    },
  };
}

const known = { names: ['a', 'b'], usable: ['a'] };
const ask = (requested: Partial<Resources>, ...clusters: readonly OfferingContext[]) =>
  kubernetesOffers({ ...someResources(), ...requested }, known, clusters, true);
const gpu = (name: string, count = '2') => ({
  labels: { 'nvidia.com/gpu.product': name },
  allocatable: { 'nvidia.com/gpu': count },
});
const exactly = (value: number) => ({ value, atLeast: false });
const atLeast = (value: number) => ({ value, atLeast: true });

test('sizes are as requested, and defaults are no limit', () => {
  const room = cluster([node('n1')]);
  expect(ask({}, room).offers).toMatchObject([
    { region: 'a', instanceType: '1CPU--2GB+', cpus: 1, memoryGb: 2, hourlyUsd: 0, spot: false },
  ]);
  expect(ask({ cpus: atLeast(2) }, room).offers).toMatchObject([{ instanceType: '2CPU--4GB+', cpus: 2, memoryGb: 4 }]);
  expect(ask({ cpus: exactly(0.5), memory: atLeast(3) }, room).offers).toMatchObject([{ instanceType: '0.5CPU--3GB' }]);
  expect(ask({ instanceType: '2CPU--8GB' }, room).offers).toMatchObject([{ instanceType: '2CPU--8GB', cpus: 2, memoryGb: 8 }]);
  const machine = ask({ instanceType: 't3.micro' }, room);
  expect(machine.offers).toEqual([]);
  expect(machine.whyNone).toContain("a has pods of any size and no 't3.micro' (instance_type there is such as 4CPU--16GB)");
});

test('requests of running pods are not free; those of ended pods are', () => {
  const pods = [
    pod('n1', { cpu: '1500m', memory: '4Gi' }),
    pod('n1', { cpu: '2' }),
    pod('n1', { cpu: '4' }, 'Succeeded'),
    pod('n2', { cpu: '9' }),
  ];
  expect(ask({ cpus: exactly(0.5) }, cluster([node('n1')], pods)).offers).toHaveLength(1);
  const { offers, whyNone } = ask({ cpus: atLeast(1) }, cluster([node('n1')], pods));
  expect(offers).toEqual([]);
  expect(whyNone).toBe(
    'No Kubernetes cluster has what is asked for (1+ CPUs, 2 GB): a has no such node (n1 has 0.5 of 4 CPUs free, 1 requested).',
  );
});

test('nodes that are full, not ready, cordoned, tainted or unselected are left out', () => {
  const nodes = [
    node('full', { allocatable: { pods: '1' } }),
    node('down', { ready: 'Unknown' }),
    node('cordoned', { spec: { unschedulable: true } }),
    node('tainted', { spec: { taints: [{ key: 'dedicated', value: 'db', effect: 'NoSchedule' }] } }),
    node('small', { allocatable: { memory: '1Gi' } }),
  ];
  const { whyNone, rejected } = ask({}, cluster(nodes, [pod('full', {})]));
  expect(rejected?.map(({ offer, why }) => `${offer.instanceType} ${why}`)).toEqual([
    'node full has as many pods as it takes (1)',
    'node down is not ready',
    'node cordoned is cordoned',
    'node tainted has the taint dedicated=db:NoSchedule, which pods do not tolerate',
    'node small has 1 of 1 GB of memory free, 2 requested',
  ]);
  expect(whyNone).toContain('node');
  const selected = ask({}, cluster([node('n1')], [], { nodeSelector: { pool: 'a' } }));
  expect(selected.whyNone).toContain('n1 lacks the label pool=a of node_selector');
});

test('tolerated taints and PreferNoSchedule taints exclude no node', () => {
  const tainted = node('n1', {
    spec: {
      taints: [
        { key: 'dedicated', value: 'db', effect: 'NoSchedule' },
        { key: 'soft', effect: 'PreferNoSchedule' },
      ],
    },
  });
  expect(ask({}, cluster([tainted], [], { tolerations: [{ key: 'dedicated', operator: 'Equal', value: 'db' }] })).offers).toHaveLength(1);
  expect(ask({}, cluster([tainted], [], { tolerations: [{ key: 'dedicated', operator: 'Exists', effect: 'NoExecute' }] })).offers).toEqual(
    [],
  );
  expect(ask({}, cluster([tainted], [], { podConfig: { spec: { tolerations: [{ operator: 'Exists' }] } } })).offers).toHaveLength(1);
});

test("a task's pod_config can admit more nodes or restrict them", () => {
  const tainted = node('n1', { labels: { disk: 'ssd' }, spec: { taints: [{ key: 'dedicated', value: 'ml', effect: 'NoSchedule' }] } });
  const offersWith = (spec: Readonly<Record<string, unknown>>, config: Partial<KubernetesContextConfig> = {}) =>
    ask({}, cluster([tainted], [], forTask({ ...plain, ...config }, { kubernetes: { podConfig: { spec } } }))).offers;
  const tolerations = [{ key: 'dedicated', operator: 'Exists' }];
  expect(ask({}, cluster([tainted], [], forTask(plain, {}))).offers).toEqual([]);
  expect(offersWith({ tolerations })).toHaveLength(1);
  expect(offersWith({ tolerations, nodeSelector: { disk: 'hdd' } })).toEqual([]);
  // Removed from the pod, so from the selection of nodes too.
  expect(offersWith({ tolerations, nodeSelector: null }, { nodeSelector: { disk: 'hdd' } })).toHaveLength(1);
  expect(offersWith({ tolerations: null }, { tolerations })).toEqual([]);
  // The configuration's tolerations apply as well, and the task's selector overrides its selector.
  expect(
    offersWith({ nodeSelector: { disk: 'ssd' } }, { podConfig: { spec: { tolerations, nodeSelector: { disk: 'hdd' } } } }),
  ).toHaveLength(1);
});

test('GPUs are found by the labels of each cloud, and their taint is tolerated', () => {
  const taints = [{ key: 'nvidia.com/gpu', value: 'present', effect: 'NoSchedule' }];
  for (const labels of [
    { 'cloud.google.com/gke-accelerator': 'nvidia-l4' },
    { 'k8s.amazonaws.com/accelerator': 'nvidia-l4' },
    { 'nvidia.com/gpu.product': 'NVIDIA-L4' },
    { 'karpenter.k8s.aws/instance-gpu-name': 'l4' },
    { 'skypilot.co/accelerator': 'l4' },
    { 'svc.dev/accelerator': 'L4' },
    { 'gpu.nvidia.com/class': 'L4' },
  ]) {
    const gpus = node('n1', { labels, allocatable: { 'nvidia.com/gpu': '2' }, spec: { taints } });
    expect(ask({ accelerator: { name: 'l4', count: 2 } }, cluster([gpus])).offers).toMatchObject([
      { accelerator: { name: 'L4', count: 2, memoryGb: 24 }, cpus: 2, memoryGb: 8 },
    ]);
  }
});

test.each([
  ['NVIDIA-A100-SXM4-80GB', undefined, 'A100-80GB'],
  ['NVIDIA-A100-PCIE-40GB', undefined, 'A100'],
  ['NVIDIA-H100-PCIe', undefined, 'H100'],
  ['NVIDIA-H100-80GB-HBM3', undefined, 'H100'],
  ['NVIDIA-L4-SHARED', undefined, 'L4'],
  ['Tesla-T4', undefined, 'T4'],
  ['Tesla-V100-PCIE-16GB', undefined, 'V100'],
  ['Tesla-V100-SXM2-32GB', undefined, 'V100-32GB'],
  ['Tesla-V100', 32, 'V100-32GB'],
  ['H100_NVLINK_80GB', undefined, 'H100'],
  ['nvidia-tesla-a100', undefined, 'A100'],
  ['nvidia-h100-mega-80gb', undefined, 'H100-MEGA'],
  ['AMD_Instinct_MI300X_OAM', undefined, 'MI300X'],
  ['Something-New', undefined, 'Something-New'],
])('the label %s with memory %s means the accelerator %s', (label, memoryGb, name) => {
  expect(acceleratorOfLabel(label, memoryGb)).toBe(name);
});

test('GPU parts do not count as whole GPUs and have their own name', () => {
  const parted = node('mig', {
    labels: { 'nvidia.com/gpu.product': 'NVIDIA-A100-SXM4-40GB-MIG-1g.5gb', 'nvidia.com/gpu.memory': '4864' },
    allocatable: { 'nvidia.com/gpu': '7' },
  });
  const onGke = node('gke', {
    labels: { 'cloud.google.com/gke-accelerator': 'nvidia-tesla-a100', 'cloud.google.com/gke-gpu-partition-size': '1g.5gb' },
    allocatable: { 'nvidia.com/gpu': '7' },
  });
  for (const one of [parted, onGke]) {
    expect(ask({ accelerator: { name: 'A100', count: 1 } }, cluster([one])).whyNone).toContain('has 7x A100-MIG-1g.5gb');
    const { offers } = ask({ accelerator: { name: 'A100-MIG-1g.5gb', count: 2 } }, cluster([one]));
    expect(offers).toMatchObject([{ accelerator: { name: 'A100-MIG-1g.5gb', count: 2, memoryGb: 5 } }]);
  }
});

test('GPUs of AMD and EKS Auto Mode are found by their labels', () => {
  const amd = node('amd', {
    labels: { 'amd.com/gpu.product-name': 'AMD_Instinct_MI300X_OAM' },
    allocatable: { 'amd.com/gpu': '8', cpu: '96', memory: '1Ti' },
  });
  const auto = node('auto', { labels: { 'eks.amazonaws.com/instance-gpu-name': 'l40s' }, allocatable: { 'nvidia.com/gpu': '1' } });
  const pods = [pod('amd', { 'amd.com/gpu': '3' })];
  expect(ask({ accelerator: { name: 'MI300X', count: 8 } }, cluster([amd], pods)).whyNone).toContain('has 5 of 8 MI300X free, 8 requested');
  expect(ask({ accelerator: { name: 'MI300X', count: 5 } }, cluster([amd], pods)).offers).toHaveLength(1);
  expect(ask({ accelerator: { name: 'L40S', count: 1 } }, cluster([auto])).offers).toHaveLength(1);
});

const cpu = (amount: string) => ({ requests: { cpu: amount } });

test('dropping unused fields of nodes and pods does not change the result', () => {
  const full: Node = { ...node('n', gpu('NVIDIA-L4')), spec: { unschedulable: true, taints: [{ key: 'a', effect: 'NoSchedule' }] } };
  const busy: Pod = {
    metadata: { name: 'p', uid: 'p', resourceVersion: '1', annotations: { long: 'text' } },
    spec: {
      nodeName: 'n',
      containers: [{ name: 'main', image: 'a:1', resources: cpu('1') }],
      initContainers: [{ name: 'side', restartPolicy: 'Always', resources: cpu('500m') }],
      overhead: { cpu: '250m' },
      resources: { requests: { memory: '1Gi' } },
    },
    status: {
      phase: 'Running',
      conditions: [
        { type: 'PodResizePending', status: 'True', reason: 'Infeasible' },
        { type: 'Ready', status: 'True' },
      ],
      containerStatuses: [{ name: 'main', resources: cpu('3'), allocatedResources: { cpu: '2' } }],
    },
  };
  expect(podLoad(countedPod(busy))).toEqual(podLoad(busy));
  expect(podLoad(busy)).toMatchObject({ cpus: 3.75, memoryGb: 1 });
  expect(nodeFacts([countedNode(full)], [])).toEqual(nodeFacts([full], []));
  expect(JSON.stringify(countedPod(busy))).not.toContain('text');
});

test('Windows nodes are left out', () => {
  const { whyNone } = ask({}, cluster([node('w', { labels: { 'kubernetes.io/os': 'windows' } })]));
  expect(whyNone).toContain('w runs Windows');
});

test('GPUs requested by memory give one offer per matching free kind', () => {
  const nodes = [node('a100', gpu('NVIDIA-A100-SXM4-80GB')), node('h100', gpu('NVIDIA-H100-80GB-HBM3')), node('l4', gpu('NVIDIA-L4'))];
  const requested = { acceleratorMemory: { value: 80, atLeast: true, count: 1, manufacturer: undefined } };
  expect(ask(requested, cluster(nodes)).offers.map(({ accelerator }) => accelerator?.name)).toEqual(['A100-80GB', 'H100']);
  const taken = cluster(nodes, [pod('a100', { 'nvidia.com/gpu': '2' })]);
  expect(ask(requested, taken).offers.map(({ accelerator }) => accelerator?.name)).toEqual(['H100']);
});

test('for missing, taken or unknown GPUs the reason names the existing ones', () => {
  const requested = { accelerator: { name: 'A100', count: 2 } };
  const nodes = [node('plain'), node('l4', gpu('NVIDIA-L4')), node('dumb', { allocatable: { 'nvidia.com/gpu': '8' } })];
  expect(ask(requested, cluster(nodes)).whyNone).toBe(
    'No Kubernetes cluster has what is asked for (2 CPUs, 8 GB, 2x A100): a has no such node (plain has no GPUs, l4 has 2x L4, dumb has 8 GPUs, but no label that tells their kind).',
  );
  const taken = cluster([node('n1', gpu('NVIDIA-A100-SXM4-40GB'))], [pod('n1', { 'nvidia.com/gpu': '1' })]);
  expect(ask(requested, taken)).toMatchObject({ isFull: true, whyNone: expect.stringContaining('n1 has 1 of 2 A100 free, 2 requested') });
  expect(ask(requested, cluster(nodes)).isFull).toBeUndefined();
});

test('a context with an autoscaler offers sizes and GPUs that no node has', () => {
  const full = [pod('n1', { cpu: '4' })];
  expect(ask({ cpus: exactly(64) }, cluster([node('n1')], full, { autoscaler: 'gke' })).offers).toMatchObject([{ cpus: 64 }]);
  expect(ask({ accelerator: { name: 'l4', count: 1 } }, cluster([], [], { autoscaler: 'gke' })).offers).toMatchObject([
    { accelerator: { name: 'L4', count: 1 } },
  ]);
});

test('a Kubernetes cluster without any node counts as one that adds nodes', () => {
  const found = ask({ cpus: exactly(64) }, cluster([]));
  expect(found.offers).toMatchObject([{ cpus: 64 }]);
  expect(found.offers[0]?.room).toBeUndefined();
  expect(found.notice).toMatch(/^There are no nodes in a now: .* kubernetes\.autoscaler/);
  expect(ask({ accelerator: { name: 'L4', count: 1 } }, cluster([])).offers).toMatchObject([{ accelerator: { name: 'L4' } }]);
  // A node that is not ready shows that the Kubernetes cluster has nodes of its own.
  expect(ask({ cpus: exactly(64) }, cluster([node('n1', { ready: 'False' })])).offers).toEqual([]);
  expect(ask({}, cluster([], [], { autoscaler: 'gke' })).notice).toBeUndefined();
});

const rooms = (requested: Partial<Resources>, one: OfferingContext) => ask(requested, one).offers.map(({ room }) => room);

test("room is counted per node, by the node's scarcest resource", () => {
  const nodes = [node('n1', { allocatable: { cpu: '1' } }), node('n2'), node('down', { ready: 'Unknown' })];
  // 0.4 CPUs are left on n1 and 0.5 on n2: together they are no room for one more pod.
  expect(rooms({ cpus: exactly(0.6) }, cluster(nodes, [pod('n2', { cpu: '500m' })]))).toEqual([1 + 5]);
  expect(rooms({ cpus: exactly(0.1), memory: exactly(8) }, cluster(nodes))).toEqual([2 + 2]);
  expect(rooms({ cpus: exactly(0.1), memory: exactly(0.1) }, cluster([node('n1', { allocatable: { cpu: '300m' } })]))).toEqual([3]);
  expect(rooms({}, cluster([node('n1', { allocatable: { pods: '3' } })], [pod('n1', {})]))).toEqual([2]);
  const gpus = [node('l4', gpu('NVIDIA-L4', '3')), node('h100', gpu('NVIDIA-H100-80GB-HBM3', '8'))];
  expect(rooms({ accelerator: { name: 'L4', count: 2 } }, cluster(gpus))).toEqual([1]);
});

test('room is unlimited with an autoscaler or hidden nodes', () => {
  const hidden: OfferingContext = { context: 'a', config: plain, state: { hidden: true } };
  const found = [cluster([node('n1')], [], { autoscaler: 'gke' }), hidden].flatMap((one) => rooms({}, one));
  expect(found).toEqual([undefined, undefined]);
});

test('a single CPU is written in the singular', () => {
  expect(ask({}, cluster([node('n1', { ready: 'False' })])).whyNone).toContain('(1 CPU, 2 GB)');
});

test('configured prices apply, and offers above the maximum cost are left out', () => {
  const price = { cpu: 0.1, memoryGb: 0.01, accelerators: { l4: 0.5 } };
  const one = cluster([node('n1', gpu('NVIDIA-L4'))], [], { price });
  expect(ask({ accelerator: { name: 'L4', count: 2 } }, one).offers[0]?.hourlyUsd).toBeCloseTo(1.28);
  const { offers, whyNone } = ask({ maxHourlyCost: 0.1 }, one);
  expect(offers).toEqual([]);
  expect(whyNone).toContain('more than max_hourly_cost');
});

test('spot follows from the labels of nodes', () => {
  const nodes = [
    node('n1'),
    node('n2', {
      labels: { 'cloud.google.com/gke-spot': 'true' },
      spec: { taints: [{ key: 'cloud.google.com/gke-spot', value: 'true', effect: 'NoSchedule' }] },
    }),
  ];
  expect(ask({ useSpot: true }, cluster(nodes)).offers).toMatchObject([{ spot: true }]);
  expect(ask({ useSpot: true }, cluster([node('n1')])).whyNone).toContain('n1 is no spot node');
});

test('only container images are accepted, one for all or by context', () => {
  expect(ask({ imageId: 'docker:python:3' }, cluster([node('n1')])).offers).toHaveLength(1);
  expect(ask({ imageId: 'ami-1' }, cluster([node('n1')])).whyNone).toContain("image_id is 'ami-1' (write docker:NAME)");
  expect(ask({ imageId: { b: 'docker:x' } }, cluster([node('n1')])).whyNone).toContain('image_id names no image for it (only for b)');
});

test('with hidden nodes any size is offered, but GPUs need a node selector', () => {
  const hidden: OfferingContext = { context: 'a', config: plain, state: { hidden: true } };
  const { offers, notice } = ask({ cpus: exactly(64) }, hidden);
  expect(offers).toMatchObject([{ cpus: 64 }]);
  expect(notice).toContain('The nodes of a may not be read');
  expect(ask({ accelerator: { name: 'L4', count: 1 } }, hidden).whyNone).toContain('does not let its nodes be read');
  const selected = { ...hidden, config: { ...plain, nodeSelector: { 'nvidia.com/gpu.product': 'NVIDIA-L4' } } };
  expect(ask({ accelerator: { name: 'L4', count: 1 } }, selected).offers).toHaveLength(1);
});

test('an unknown or disallowed context is explained with the existing ones', () => {
  expect(ask({ region: 'aa' })).toMatchObject({
    whyNone: "There is no Kubernetes context 'aa' (there are: a, b). Did you mean 'a'?",
    isMisnamed: true,
  });
  expect(ask({ region: 'b' }).isMisnamed).toBe(false);
  expect(ask({ region: 'b' }).whyNone).toContain("'b' is not among kubernetes.allowed_contexts (a)");
  expect(ask({ region: 'a', zone: 'z' }).whyNone).toContain("The zone 'z' is asked for");
  expect(ask({}, { context: 'a', config: plain, state: { why: 'no answer' } }).whyNone).toContain('a cannot be used: no answer');
});

test('offers work for 1,000 nodes and 20,000 pods', () => {
  const nodes = Array.from({ length: 1_000 }, (_, index) => node(`n${index}`, { allocatable: { cpu: '16' } }));
  const pods = Array.from({ length: 20_000 }, (_, index) => pod(`n${index % 1_000}`, { cpu: '800m', memory: '700Mi' }));
  const { offers, whyNone } = ask({ cpus: exactly(1) }, cluster(nodes, pods));
  expect(offers).toEqual([]);
  expect(whyNone).toContain('and 995 more');
  expect(ask({ cpus: exactly(1) }, cluster(nodes, pods.slice(0, -1_001))).offers).toHaveLength(1);
});
