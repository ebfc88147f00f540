import type { KubernetesContextConfig } from '../../domain/config.ts';
import { mergePod } from '../../domain/kubernetes/merge-pod.ts';
import type { ProviderConfig } from '../../domain/task.ts';
import { isObject } from '../../shared/is-object.ts';
import { gpuResources, spotLabels } from './nodes/gpu-labels.ts';
import type { Toleration } from './objects.ts';

type Settings = Pick<KubernetesContextConfig, 'nodeSelector' | 'tolerations' | 'podConfig'>;

/** A context's configuration for a task: the task's own `pod_config` also decides which nodes its pods may use. */
export function forTask(config: KubernetesContextConfig, providerConfig: ProviderConfig | undefined): KubernetesContextConfig {
  const own = providerConfig?.kubernetes?.podConfig;
  // Merged like the pod: the task may remove what the configuration sets.
  return own === undefined ? config : { ...config, ...nodeSettings(config, own), podConfig: {} };
}

/** The nodes that the configuration allows, by `node_selector` and `pod_config`. */
export function configuredSelector(config: Settings): Readonly<Record<string, string>> {
  return nodeSettings(config).nodeSelector;
}

/** The taints that pods tolerate: those of the configuration, and the usual ones of GPU nodes and spot nodes. */
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
  const selected = isObject(spec['nodeSelector']) ? Object.entries(spec['nodeSelector']) : [];
  return {
    nodeSelector: Object.fromEntries(selected.filter((entry): entry is [string, string] => typeof entry[1] === 'string')),
    tolerations: Array.isArray(spec['tolerations']) ? spec['tolerations'].filter(isObject) : [],
  };
}
