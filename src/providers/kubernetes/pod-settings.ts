import type { KubernetesContextConfig } from '../../domain/config.ts';
import { mergePod } from '../../domain/merge-pod.ts';
import type { PlaceConfig } from '../../domain/task.ts';
import { isObject } from '../../shared/is-object.ts';
import { gpuResources, spotLabels } from './gpu-labels.ts';
import type { Toleration } from './objects.ts';

type Settings = Pick<KubernetesContextConfig, 'nodeSelector' | 'tolerations' | 'podConfig'>;

/** As a task sees a context: its own `pod_config` decides as well which nodes its pods may be put on. */
export function forTask(config: KubernetesContextConfig, placeConfig: PlaceConfig | undefined): KubernetesContextConfig {
  const own = placeConfig?.kubernetes?.podConfig;
  // Merged the way the pod is: the task may take away what the configuration says.
  return own === undefined ? config : { ...config, ...nodeSettings(config, own), podConfig: {} };
}

/** Which nodes the configuration allows: of `node_selector` and of `pod_config`. */
export function configuredSelector(config: Settings): Readonly<Record<string, string>> {
  return nodeSettings(config).nodeSelector;
}

/** The taints that pods tolerate: those of the configuration, and what nodes with GPUs and spot nodes are usually kept free with. */
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
