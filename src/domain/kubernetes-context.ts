import type { KubernetesConfig, KubernetesContextConfig } from './config.ts';

/** How one cluster is used: what is said for its context, else what is said for all. */
export function kubernetesContextConfig(config: KubernetesConfig, context: string): KubernetesContextConfig {
  const { allowedContexts: _allowed, contexts, ...common } = config;
  return { ...common, ...contexts[context] };
}

/**
 * The contexts that may be used, of those of the kubeconfig. Where nothing is said that is the current one, and another one only for who names it:
 * `named`.
 */
export function usableContexts(
  config: Pick<KubernetesConfig, 'allowedContexts'>,
  kubeconfig: { readonly names: readonly string[]; readonly current: string | undefined },
  named?: string,
): readonly string[] {
  const { allowedContexts } = config;
  const { names, current } = kubeconfig;
  if (allowedContexts === 'all') return names;
  if (allowedContexts !== undefined) return allowedContexts.filter((name) => names.includes(name));
  const wanted = new Set([current, named]);
  return names.filter((name) => wanted.has(name));
}
