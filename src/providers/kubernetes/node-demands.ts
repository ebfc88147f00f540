import { acceleratorManufacturer, canonicalAccelerator, isSameAccelerator } from '../../domain/accelerators.ts';
import type { KubernetesContextConfig } from '../../domain/config.ts';
import type { Offer } from '../provider.ts';
import { gkeLabels, gpuLabelFormats, labelsFor, spotLabels, type GpuKind, type GpuResource } from './gpu-labels.ts';
import type { NodeFacts } from './node-facts.ts';
import { configuredSelector } from './pod-settings.ts';

/** A label with the values that would do. */
export interface LabelDemand {
  readonly key: string;
  readonly values: readonly string[];
}

/** The same for GPUs, of which there may be several kinds by one value. */
interface GpuLabelDemand extends LabelDemand {
  /** Tells these kinds apart. */
  readonly memory?: LabelDemand | undefined;
  /** What tells that a node with that value has another kind nevertheless, such as parts of such GPUs. */
  readonly except?: readonly LabelDemand[];
}

/** By what GPUs are counted, and what tells that they are of the right kind. */
export interface GpuDemand {
  readonly resource: GpuResource;
  readonly anyOf: readonly GpuLabelDemand[];
  /** The size of the parts on GKE; undefined: whole GPUs. */
  readonly gkePartition?: string | undefined;
}

/** Which nodes a pod may be put on, because of its offer. */
export interface NodeDemands {
  /** By what its GPUs are counted, and any of which labels tells that they are of the right kind; none where the configuration sees to it. */
  readonly gpu: GpuDemand | undefined;
  /** Any of which labels makes it a spot node; empty where none is wanted. */
  readonly spot: readonly LabelDemand[];
  /** Labels of spot nodes, which are the last choice for a pod that is to stay. */
  readonly avoided: readonly LabelDemand[];
}

const asDemands = (labels: typeof spotLabels): readonly LabelDemand[] => labels.map(([key, value]) => ({ key, values: [value] }));

/** What an offer demands of nodes; `nodes` is undefined where they may not be read. */
export function nodeDemands(offer: Offer, config: KubernetesContextConfig, nodes: readonly NodeFacts[] | undefined): NodeDemands {
  const seenSpot = spotLabels.filter(([key, value]) => nodes?.some(({ labels }) => labels[key] === value));
  return {
    gpu: gpuDemand(offer, config, nodes),
    spot: offer.spot ? asDemands(seenSpot.length > 0 ? seenSpot : spotLabels) : [],
    avoided: offer.spot ? [] : asDemands(seenSpot),
  };
}

function gpuDemand(offer: Offer, config: KubernetesContextConfig, nodes: readonly NodeFacts[] | undefined): NodeDemands['gpu'] {
  const { accelerator } = offer;
  if (accelerator === undefined) return undefined;
  const matching = (nodes ?? []).filter(({ gpu }) => gpu !== undefined && isSameAccelerator(gpu.name, accelerator.name));
  const resource = matching.find((node) => node.gpuResource !== undefined)?.gpuResource ?? usualResource(accelerator.name);
  const gkePartition = matching.find(({ gpu }) => gpu?.gkePartition !== undefined)?.gpu?.gkePartition;
  const seen = seenLabels(matching.flatMap(({ gpu }) => gpu ?? []));
  const others = (nodes ?? []).filter(({ gpu }) => gpu !== undefined && !isSameAccelerator(gpu.name, accelerator.name));
  if (seen.length > 0) return { resource, anyOf: seen.map((one) => ({ ...one, except: exceptions(one, others) })), gkePartition };
  const selector = configuredSelector(config);
  if (gpuLabelFormats.some(({ key }) => selector[key] !== undefined)) return { resource, anyOf: [] };
  return { resource, anyOf: unseenLabels(accelerator.name, config.autoscaler) };
}

/** The labels by which nodes that there are tell of GPUs. */
function seenLabels(kinds: readonly GpuKind[]): readonly GpuLabelDemand[] {
  const byKeys = Map.groupBy(kinds, ({ format, memoryLabel }) => `${format.key} ${memoryLabel?.key ?? ''}`);
  return [...byKeys.values()].flatMap(([first, ...others]): readonly GpuLabelDemand[] => {
    if (first === undefined) return [];
    const valuesOf = (value: (kind: GpuKind) => string | undefined): readonly string[] =>
      [...new Set([first, ...others].flatMap((kind) => value(kind) ?? []))].toSorted();
    const { format, memoryLabel } = first;
    const memory = memoryLabel && { key: memoryLabel.key, values: valuesOf((kind) => kind.memoryLabel?.value) };
    return [{ key: format.key, values: valuesOf(({ value }) => value), memory }];
  });
}

/** By what nodes with other GPUs that have a label too are told from those that are wanted. */
function exceptions({ key, values }: LabelDemand, others: readonly NodeFacts[]): readonly LabelDemand[] {
  const alike = others.filter(({ labels, gpu }) => values.includes(labels[key] ?? '') && gpu?.format.key !== key);
  const byKey = Map.groupBy(
    alike.flatMap(({ gpu }) => gpu ?? []),
    ({ format }) => format.key,
  );
  return [...byKey].map(([other, kinds]) => ({ key: other, values: [...new Set(kinds.map(({ value }) => value))].toSorted() }));
}

/** What no node tells of yet is counted under its maker's name. */
function usualResource(accelerator: string): GpuResource {
  return acceleratorManufacturer(accelerator) === 'AMD' ? 'amd.com/gpu' : 'nvidia.com/gpu';
}

/** The labels that nodes will have which do not exist yet: those of the autoscaler's cloud, else of every one whose values are known. */
function unseenLabels(name: string, autoscaler: string | undefined): readonly GpuLabelDemand[] {
  const canonical = canonicalAccelerator(name) ?? name;
  const known = gpuLabelFormats.flatMap((format) => {
    const labels = labelsFor(format, canonical);
    return labels === undefined ? [] : [{ by: format.name.toLowerCase(), demand: { key: format.key, ...labels } }];
  });
  const own = known.filter(({ by }) => by === autoscaler?.toLowerCase());
  return (own.length > 0 ? own : known).map(({ demand }) => demand);
}

/** Part of a pod's affinity, as Kubernetes writes it. */
type Expression = Readonly<Record<string, unknown>>;

/** All of which a node has to satisfy, as Kubernetes writes it. */
export interface NodeTerm {
  readonly matchExpressions?: readonly unknown[];
}

const expression = ({ key, values }: LabelDemand, operator: 'In' | 'NotIn' = 'In'): Expression => ({ key, operator, values });

/** GKE's label for a kind of GPU is on nodes with whole ones and on nodes with parts. */
function gkePart({ key }: LabelDemand, partition: string | undefined): readonly Expression[] {
  if (key !== gkeLabels.accelerator) return [];
  if (partition === undefined) return [{ key: gkeLabels.partition, operator: 'DoesNotExist' }];
  return [expression({ key: gkeLabels.partition, values: [partition] })];
}

/** Terms of which a node has to satisfy one; empty where any node does. */
export function nodeTerms({ gpu, spot }: NodeDemands): readonly NodeTerm[] {
  const gpus = (gpu?.anyOf ?? []).map((one) => [
    expression(one),
    ...(one.memory === undefined ? [] : [expression(one.memory)]),
    ...(one.except ?? []).map((other) => expression(other, 'NotIn')),
    ...gkePart(one, gpu?.gkePartition),
  ]);
  return inEach(
    gpus.map((matchExpressions) => ({ matchExpressions })),
    spot.map((one) => ({ matchExpressions: [expression(one)] })),
  );
}

/** Terms that are satisfied where one of each is; none says nothing. */
export function inEach(some: readonly NodeTerm[], others: readonly NodeTerm[]): readonly NodeTerm[] {
  if (some.length === 0 || others.length === 0) return [...some, ...others];
  return some.flatMap((one) =>
    others.map((other) => ({ ...one, ...other, matchExpressions: [...(one.matchExpressions ?? []), ...(other.matchExpressions ?? [])] })),
  );
}

/** Which nodes are the last choice; undefined where none is. */
export function nodePreferences({ avoided }: NodeDemands): readonly Expression[] | undefined {
  if (avoided.length === 0) return undefined;
  return [{ weight: 100, preference: { matchExpressions: avoided.map((one) => expression(one, 'NotIn')) } }];
}
