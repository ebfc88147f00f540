import type { KubernetesContextConfig } from '../../domain/config.ts';
import { isObject } from '../../shared/is-object.ts';
import { gpuResources, spotLabels } from './gpu-labels.ts';
import type { Toleration } from './objects.ts';

/** Which nodes the configuration allows: of `node_selector` and of `pod_config`. */
export function configuredSelector(config: Pick<KubernetesContextConfig, 'nodeSelector' | 'podConfig'>): Readonly<Record<string, string>> {
  const patched = specOf(config.podConfig)['nodeSelector'];
  const texts = isObject(patched) ? Object.entries(patched).filter((entry): entry is [string, string] => typeof entry[1] === 'string') : [];
  return { ...config.nodeSelector, ...Object.fromEntries(texts) };
}

/** The taints that pods tolerate: those of the configuration, and what nodes with GPUs and spot nodes are usually kept free with. */
export function podTolerations(
  config: Pick<KubernetesContextConfig, 'tolerations' | 'podConfig'>,
  gpus: number,
  isSpot: boolean,
): readonly Toleration[] {
  const patched = specOf(config.podConfig)['tolerations'];
  return [
    ...config.tolerations,
    ...(Array.isArray(patched) ? patched.filter(isObject) : []),
    ...(gpus > 0 ? gpuResources.map((key) => ({ key, operator: 'Exists' })) : []),
    ...(isSpot ? spotLabels.map(([key, value]) => ({ key, operator: 'Equal', value })) : []),
  ];
}

/** The `spec` of a partial pod. */
export function specOf(pod: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
  return isObject(pod['spec']) ? pod['spec'] : {};
}
