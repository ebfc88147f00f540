import type { KubernetesConfig, KubernetesContextConfig } from '../config.ts';

/** Settings of one Kubernetes cluster: the settings of its context override the common ones. */
export function kubernetesContextConfig(config: KubernetesConfig, context: string): KubernetesContextConfig {
  const { allowedContexts: _allowed, contexts, ...common } = config;
  return { ...common, ...contexts[context] };
}

/** The usable contexts of the kubeconfig: as configured, otherwise the current one and `named` (by the caller). */
export function usableContexts(
  config: Pick<KubernetesConfig, 'allowedContexts'>,
  kubeconfig: { readonly names: readonly string[]; readonly current: string | undefined },
  named?: string,
): readonly string[] {
  const { allowedContexts } = config;
  const { names, current } = kubeconfig;
  if (allowedContexts === 'all') return names;
  if (allowedContexts !== undefined) return allowedContexts.filter((name) => names.includes(name));
  const selected = new Set([current, named]);
  return names.filter((name) => selected.has(name));
}
