import type { KubeObject } from '../../../kubernetes/kube-api.ts';
import { hasEnded, type Condition, type Pod, type Quantities } from '../../../kubernetes/pod.ts';
import { podRequests, readQuantities } from '../../../kubernetes/quantity.ts';
import { bytesPerGb } from '../../../shared/units.ts';
import { gpuKindOf, gpuResources, isSpotNode, type GpuKind, type GpuResource } from './gpu-labels.ts';

/** The fields of a node that svc reads. */
export interface Node extends KubeObject {
  readonly spec?: { readonly unschedulable?: boolean; readonly taints?: readonly Taint[] };
  readonly status?: { readonly allocatable?: Quantities; readonly conditions?: readonly Condition[] };
}

/** Keeps pods that do not tolerate it from a node. */
interface Taint {
  readonly key: string;
  readonly value?: string;
  readonly effect: string;
}

/** As Kubernetes writes it. */
export interface Toleration {
  readonly key?: string;
  readonly operator?: string;
  readonly value?: string;
  readonly effect?: string;
  readonly tolerationSeconds?: number;
}

/** A node's capacity, and how much of it no pod has requested. */
export interface NodeFacts {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly taints: readonly Taint[];
  /** Why the node takes no pods now: a clause. Undefined: it does. */
  readonly closed: string | undefined;
  readonly isSpot: boolean;
  readonly gpu: GpuKind | undefined;
  readonly gpuResource: GpuResource | undefined;
  readonly whole: NodeRoom;
  readonly free: NodeRoom;
}

interface NodeRoom {
  readonly cpus: number;
  readonly memoryGb: number;
  readonly gpus: number;
  readonly pods: number;
}

/** The only part of a pod that is kept of a long list. */
interface PodLoad extends NodeRoom {
  readonly node: string;
}

/** Undefined for a pod without a node or that has ended. */
export function podLoad(pod: Pod): PodLoad | undefined {
  const node = pod.spec?.nodeName;
  if (node === undefined || hasEnded(pod)) return undefined;
  const requests = podRequests(pod);
  return {
    node,
    cpus: requests.get('cpu') ?? 0,
    memoryGb: (requests.get('memory') ?? 0) / bytesPerGb,
    gpus: gpuResources.reduce((sum, name) => sum + (requests.get(name) ?? 0), 0),
    pods: 1,
  };
}

/** Nodes with their free resources. */
export function nodeFacts(nodes: readonly Node[], loads: readonly PodLoad[]): readonly NodeFacts[] {
  const byNode = new Map<string, { cpus: number; memoryGb: number; gpus: number; pods: number }>();
  for (const load of loads) {
    const sum = byNode.get(load.node) ?? { cpus: 0, memoryGb: 0, gpus: 0, pods: 0 };
    sum.cpus += load.cpus;
    sum.memoryGb += load.memoryGb;
    sum.gpus += load.gpus;
    sum.pods += load.pods;
    byNode.set(load.node, sum);
  }
  return nodes.map((node): NodeFacts => {
    const { name, labels = {} } = node.metadata;
    const allocatable = readQuantities(node.status?.allocatable);
    const gpuResource = gpuResources.find((resource) => (allocatable.get(resource) ?? 0) > 0);
    const whole: NodeRoom = {
      cpus: allocatable.get('cpu') ?? 0,
      memoryGb: (allocatable.get('memory') ?? 0) / bytesPerGb,
      gpus: gpuResource === undefined ? 0 : (allocatable.get(gpuResource) ?? 0),
      pods: allocatable.get('pods') ?? 0,
    };
    const used = byNode.get(name) ?? { cpus: 0, memoryGb: 0, gpus: 0, pods: 0 };
    return {
      name,
      labels,
      taints: node.spec?.taints ?? [],
      closed: whyClosed(node),
      isSpot: isSpotNode(labels),
      gpu: gpuKindOf(labels),
      gpuResource,
      whole,
      free: {
        cpus: left(whole.cpus, used.cpus),
        memoryGb: left(whole.memoryGb, used.memoryGb),
        gpus: left(whole.gpus, used.gpus),
        pods: left(whole.pods, used.pods),
      },
    };
  });
}

/** Rounds: ten pods of 0.1 leave 1 of 2 CPUs, but the sum of binary fractions leaves 0.9999. */
function left(whole: number, used: number): number {
  return Math.max(0, Math.round((whole - used) * 1e6) / 1e6);
}

/** Whether the Kubernetes cluster reports a node as ready. */
export function isNodeReady(node: Node): boolean {
  return node.status?.conditions?.find(({ type }) => type === 'Ready')?.status === 'True';
}

function whyClosed(node: Node): string | undefined {
  if (node.metadata.deletionTimestamp !== undefined) return 'is being removed';
  if (!isNodeReady(node)) return 'is not ready';
  if (node.metadata.labels?.['kubernetes.io/os'] === 'windows') return 'runs Windows';
  return node.spec?.unschedulable === true ? 'is cordoned' : undefined;
}

/** The taint that keeps a pod with these tolerations from a node. */
export function untolerated(taints: readonly Taint[], tolerations: readonly Toleration[]): Taint | undefined {
  return taints.find((taint) => taint.effect !== 'PreferNoSchedule' && !tolerations.some((toleration) => tolerates(toleration, taint)));
}

function tolerates({ key, operator = 'Equal', value = '', effect }: Toleration, taint: Taint): boolean {
  if (effect !== undefined && effect !== '' && effect !== taint.effect) return false;
  if (key === undefined || key === '') return operator === 'Exists';
  return key === taint.key && (operator === 'Exists' || value === (taint.value ?? ''));
}

/** Keeps the fields that `podLoad` needs, because lists are long. */
export function countedPod({ metadata, spec = {}, status = {} }: Pod): Pod {
  const described = (spec.containers ?? []).map((one) => pick(one, 'name', 'restartPolicy', 'resources'));
  const before = (spec.initContainers ?? []).map((one) => pick(one, 'name', 'restartPolicy', 'resources'));
  return {
    metadata: pick(metadata, 'name', 'uid', 'resourceVersion'),
    spec: { ...pick(spec, 'nodeName', 'overhead', 'resources'), containers: described, initContainers: before },
    status: {
      ...pick(status, 'phase'),
      conditions: (status.conditions ?? []).filter(({ type }) => type === 'PodResizePending'),
      containerStatuses: (status.containerStatuses ?? []).map((one) => pick(one, 'name', 'resources', 'allocatedResources')),
      initContainerStatuses: (status.initContainerStatuses ?? []).map((one) => pick(one, 'name', 'resources', 'allocatedResources')),
    },
  };
}

/** Keeps the fields that svc reads. The rest, such as images, is most of a node's size. */
export function countedNode({ metadata, spec = {}, status = {} }: Node): Node {
  return {
    metadata: pick(metadata, 'name', 'uid', 'resourceVersion', 'labels', 'deletionTimestamp'),
    spec: pick(spec, 'unschedulable', 'taints'),
    status: pick(status, 'allocatable', 'conditions'),
  };
}

function pick<T extends object, Name extends keyof T>(from: T, ...names: readonly Name[]): Pick<T, Name> {
  const picked: Partial<Pick<T, Name>> = {};
  for (const name of names) if (from[name] !== undefined) picked[name] = from[name];
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- only undefined fields are absent, and those are optional
  return picked as Pick<T, Name>;
}
