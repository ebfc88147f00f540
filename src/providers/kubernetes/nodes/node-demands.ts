import { acceleratorManufacturer, canonicalAccelerator, isSameAccelerator } from '../../../domain/accelerators.ts';
import type { KubernetesContextConfig } from '../../../domain/config.ts';
import type { Offer } from '../../provider.ts';
import { gkeLabels, gpuLabelFormats, labelsFor, spotLabels, type GpuKind, type GpuResource } from './gpu-labels.ts';
import type { NodeFacts } from './node-facts.ts';
import { configuredSelector } from '../pod-settings.ts';

interface LabelDemand {
  readonly key: string;
  readonly values: readonly string[];
}

/** A label for GPUs; several kinds may share one value. */
interface GpuLabelDemand extends LabelDemand {
  /** Label that distinguishes these kinds. */
  readonly memory?: LabelDemand | undefined;
  /** Labels that show another kind despite an acceptable value, such as parts of such GPUs. */
  readonly except?: readonly LabelDemand[];
}

interface GpuDemand {
  readonly resource: GpuResource;
  readonly anyOf: readonly GpuLabelDemand[];
  /** Size of GKE's GPU parts; undefined: whole GPUs. */
  readonly gkePartition?: string | undefined;
}

/** What an offer demands of nodes. */
export interface NodeDemands {
  /** `anyOf` is empty where the configuration selects the nodes. */
  readonly gpu: GpuDemand | undefined;
  /** Any of these labels marks a spot node; empty where the offer is not spot. */
  readonly spot: readonly LabelDemand[];
  /** Labels of spot nodes: the last choice for an on-demand pod. */
  readonly avoided: readonly LabelDemand[];
}

const asDemands = (labels: typeof spotLabels): readonly LabelDemand[] => labels.map(([key, value]) => ({ key, values: [value] }));

/** The demands of an offer; `nodes` is undefined where the user may not read them. */
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

/** Labels that exclude nodes with an acceptable value but other GPUs. */
function exceptions({ key, values }: LabelDemand, others: readonly NodeFacts[]): readonly LabelDemand[] {
  const alike = others.filter(({ labels, gpu }) => values.includes(labels[key] ?? '') && gpu?.format.key !== key);
  const byKey = Map.groupBy(
    alike.flatMap(({ gpu }) => gpu ?? []),
    ({ format }) => format.key,
  );
  return [...byKey].map(([other, kinds]) => ({ key: other, values: [...new Set(kinds.map(({ value }) => value))].toSorted() }));
}

/** Device plugins count GPUs by manufacturer. */
function usualResource(accelerator: string): GpuResource {
  return acceleratorManufacturer(accelerator) === 'AMD' ? 'amd.com/gpu' : 'nvidia.com/gpu';
}

/** For nodes that do not exist yet: labels of the autoscaler's cloud, else of every format with known values. */
function unseenLabels(name: string, autoscaler: string | undefined): readonly GpuLabelDemand[] {
  const canonical = canonicalAccelerator(name) ?? name;
  const known = gpuLabelFormats.flatMap((format) => {
    const labels = labelsFor(format, canonical);
    return labels === undefined ? [] : [{ by: format.name.toLowerCase(), demand: { key: format.key, ...labels } }];
  });
  const own = known.filter(({ by }) => by === autoscaler?.toLowerCase());
  return (own.length > 0 ? own : known).map(({ demand }) => demand);
}

/** As Kubernetes writes it in affinities. */
type Expression = Readonly<Record<string, unknown>>;

/** A node must satisfy all of the expressions. */
export interface NodeTerm {
  readonly matchExpressions?: readonly unknown[];
}

const expression = ({ key, values }: LabelDemand, operator: 'In' | 'NotIn' = 'In'): Expression => ({ key, operator, values });

/** GKE's label names the kind of whole GPUs and of parts. */
function gkePart({ key }: LabelDemand, partition: string | undefined): readonly Expression[] {
  if (key !== gkeLabels.accelerator) return [];
  if (partition === undefined) return [{ key: gkeLabels.partition, operator: 'DoesNotExist' }];
  return [expression({ key: gkeLabels.partition, values: [partition] })];
}

/** A node must satisfy one of the terms. Empty: any node is acceptable. */
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

/** A node must satisfy one term of each list. An empty list demands nothing. */
export function inEach(some: readonly NodeTerm[], others: readonly NodeTerm[]): readonly NodeTerm[] {
  if (some.length === 0 || others.length === 0) return [...some, ...others];
  return some.flatMap((one) =>
    others.map((other) => ({ ...one, ...other, matchExpressions: [...(one.matchExpressions ?? []), ...(other.matchExpressions ?? [])] })),
  );
}

/** Makes spot nodes the last choice; undefined where there is no preference. */
export function nodePreferences({ avoided }: NodeDemands): readonly Expression[] | undefined {
  if (avoided.length === 0) return undefined;
  return [{ weight: 100, preference: { matchExpressions: avoided.map((one) => expression(one, 'NotIn')) } }];
}
