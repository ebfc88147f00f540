import { acceleratorManufacturer, canonicalAccelerator, isSameAccelerator } from '../../domain/accelerators.ts';
import type { KubernetesContextConfig } from '../../domain/config.ts';
import type { Offer } from '../provider.ts';
import { gkeLabels, gpuLabelFormats, spotLabels, type GpuResource } from './gpu-labels.ts';
import type { NodeFacts } from './node-facts.ts';
import { configuredSelector } from './pod-settings.ts';

/** A label with the values that would do. */
export interface LabelDemand {
  readonly key: string;
  readonly values: readonly string[];
}

/** By what GPUs are counted, and what tells that they are of the right kind. */
export interface GpuDemand {
  readonly resource: GpuResource;
  readonly anyOf: readonly LabelDemand[];
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
  const byKey = new Map<string, Set<string>>();
  for (const { gpu } of matching) if (gpu !== undefined) byKey.set(gpu.format.key, (byKey.get(gpu.format.key) ?? new Set()).add(gpu.value));
  if (byKey.size > 0)
    return { resource, anyOf: [...byKey].map(([key, values]) => ({ key, values: [...values].toSorted() })), gkePartition };
  const selector = configuredSelector(config);
  if (gpuLabelFormats.some(({ key }) => selector[key] !== undefined)) return { resource, anyOf: [] };
  return { resource, anyOf: unseenLabels(accelerator.name, config.autoscaler) };
}

/** What no node tells of yet is counted under its maker's name. */
function usualResource(accelerator: string): GpuResource {
  return acceleratorManufacturer(accelerator) === 'AMD' ? 'amd.com/gpu' : 'nvidia.com/gpu';
}

/** The labels that nodes will have which do not exist yet: those of the autoscaler's cloud, else of every one whose values are known. */
function unseenLabels(name: string, autoscaler: string | undefined): readonly LabelDemand[] {
  const canonical = canonicalAccelerator(name) ?? name;
  const known = gpuLabelFormats.flatMap(({ name: format, key, labelFor }) => {
    const value = labelFor?.(canonical);
    return value === undefined ? [] : [{ format: format.toLowerCase(), key, values: [value] }];
  });
  const own = known.filter(({ format }) => format === autoscaler?.toLowerCase());
  return (own.length > 0 ? own : known).map(({ key, values }) => ({ key, values }));
}

const expression = ({ key, values }: LabelDemand): Readonly<Record<string, unknown>> => ({ key, operator: 'In', values });

/** GKE's label for a kind of GPU is on nodes with whole ones and on nodes with parts. */
function gkePart({ key }: LabelDemand, partition: string | undefined): readonly Readonly<Record<string, unknown>>[] {
  if (key !== gkeLabels.accelerator) return [];
  if (partition === undefined) return [{ key: gkeLabels.partition, operator: 'DoesNotExist' }];
  return [expression({ key: gkeLabels.partition, values: [partition] })];
}

/** As the affinity of a pod; undefined where any node does. */
export function nodeAffinity({ gpu, spot, avoided }: NodeDemands): Readonly<Record<string, unknown>> | undefined {
  const gpus = (gpu?.anyOf ?? []).map((one) => [expression(one), ...gkePart(one, gpu?.gkePartition)]);
  const terms =
    gpus.length > 0 && spot.length > 0
      ? gpus.flatMap((one) => spot.map((other) => [...one, expression(other)]))
      : [...gpus, ...spot.map((one) => [expression(one)])];
  if (terms.length === 0 && avoided.length === 0) return undefined;
  return {
    ...(terms.length > 0 && {
      requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: terms.map((matchExpressions) => ({ matchExpressions })) },
    }),
    ...(avoided.length > 0 && {
      preferredDuringSchedulingIgnoredDuringExecution: [
        { weight: 100, preference: { matchExpressions: avoided.map(({ key, values }) => ({ key, operator: 'NotIn', values })) } },
      ],
    }),
  };
}
