import type { KubernetesContextConfig } from '../../domain/config.ts';
import { requestedGpuCount } from '../../domain/gpus.ts';
import { mergePod } from '../../domain/kubernetes/merge-pod.ts';
import type { ProviderConfig, Resources } from '../../domain/task.ts';
import { isObject } from '../../shared/json.ts';
import { textEntries } from './names.ts';
import { gpuResources, spotLabels } from './nodes/gpu-labels.ts';
import type { Toleration } from './nodes/node-facts.ts';

type Settings = Pick<KubernetesContextConfig, 'nodeSelector' | 'tolerations' | 'podConfig'>;

/** The task's own `pod_config` also decides which nodes its pods may use. */
export function forTask(config: KubernetesContextConfig, providerConfig: ProviderConfig | undefined): KubernetesContextConfig {
  const own = providerConfig?.kubernetes?.podConfig;
  // Merged like the pod: the task may remove what the configuration sets.
  return own === undefined ? config : { ...config, ...nodeSettings(config, own), podConfig: {} };
}

/** The nodes that `node_selector` and `pod_config` allow. */
export function configuredSelector(config: Settings): Readonly<Record<string, string>> {
  return nodeSettings(config).nodeSelector;
}

/** Includes the usual taints of GPU nodes and spot nodes. */
export function podTolerations(config: Settings, gpus: number, isSpot: boolean): readonly Toleration[] {
  return [
    ...nodeSettings(config).tolerations,
    ...(gpus > 0 ? gpuResources.map((key) => ({ key, operator: 'Exists' })) : []),
    ...(isSpot ? spotLabels.map(([key, value]) => ({ key, operator: 'Equal', value })) : []),
  ];
}

function nodeSettings({ nodeSelector, tolerations, podConfig }: Settings, ...more: readonly Settings['podConfig'][]) {
  const pod = [podConfig, ...more].reduce((merged, patch) => mergePod(merged, patch), { spec: { nodeSelector, tolerations } });
  const spec = isObject(pod['spec']) ? pod['spec'] : {};
  return {
    nodeSelector: textEntries(spec['nodeSelector']),
    tolerations: Array.isArray(spec['tolerations']) ? spec['tolerations'].filter(isObject) : [],
  };
}

/** Distinguishes container images from machine images. */
const mark = 'docker:';

/** The task's image for a context, or the configured one. Without either, the reason as a clause. */
export function chooseImage(
  imageId: Resources['imageId'],
  context: string,
  configured: string,
): { readonly image: string } | { readonly why: string } {
  const requested = typeof imageId === 'object' ? (imageId[context] ?? imageId['*']) : imageId;
  if (imageId === undefined) return { image: configured };
  if (requested === undefined) return { why: `image_id names no image for it (only for ${Object.keys(imageId).join(', ')})` };
  const image = requested.startsWith(mark) ? requested.slice(mark.length).replace(/^\/\//, '') : '';
  return image === '' ? { why: `takes images of containers only, and image_id is '${requested}' (write docker:NAME)` } : { image };
}

/** A pod's resource requests. */
export interface PodSize {
  readonly cpus: number;
  readonly memoryGb: number;
  /** Whether it may use more memory than requested: when the task sets none. */
  readonly isMemorySoft: boolean;
}

/** For a task that sets no amount; with GPUs, for each GPU. Neither is a limit. */
const defaultCpus = 1;
const defaultMemoryGb = 2;
const defaultMemoryGbPerGpu = 4;

/** For a task that requests no memory. */
const memoryGbPerCpu = 2;

/** Amounts as requested (`2+` is 2), defaults for the rest. */
export function requestedSize(resources: Resources): PodSize {
  const named = resources.instanceType === undefined ? undefined : readSize(resources.instanceType);
  if (named !== undefined) return named;
  const gpus = requestedGpuCount(resources);
  const cpus = resources.cpus?.value ?? (gpus === 0 ? defaultCpus : gpus * defaultCpus);
  if (resources.memory !== undefined) return { cpus, memoryGb: resources.memory.value, isMemorySoft: false };
  const memoryGb = gpus === 0 ? (resources.cpus === undefined ? defaultMemoryGb : cpus * memoryGbPerCpu) : gpus * defaultMemoryGbPerGpu;
  return { cpus, memoryGb, isMemorySoft: true };
}

/** SkyPilot's form: `2CPU--4GB`, or `2CPU--4GB+` when the pod may use more memory. */
export function sizeName({ cpus, memoryGb, isMemorySoft }: PodSize): string {
  return `${cpus}CPU--${memoryGb}GB${isMemorySoft ? '+' : ''}`;
}

/** The inverse of `sizeName`. Suffixes of SkyPilot's names (`--L4:1`) belong in `accelerators`. */
export function readSize(name: string): PodSize | undefined {
  const match = /^(\d+(?:\.\d+)?)CPU--(\d+(?:\.\d+)?)GB(\+?)$/.exec(name);
  if (match === null) return undefined;
  return { cpus: Number(match[1]), memoryGb: Number(match[2]), isMemorySoft: match[3] === '+' };
}

/**
 * The configuration with an autoscaler where the Kubernetes cluster has no node at all: it is of no use unless it adds
 * some, as after a scale-down to zero. `nodes` undefined: they are unknown.
 */
export function withAssumedAutoscaler(config: KubernetesContextConfig, nodes: readonly unknown[] | undefined): KubernetesContextConfig {
  return nodes?.length === 0 && config.autoscaler === undefined ? { ...config, autoscaler: 'generic' } : config;
}
