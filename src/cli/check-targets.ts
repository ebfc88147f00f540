import { cloudSection, type Config, type SshPool } from '../domain/config.ts';
import { kubernetesContextConfig } from '../domain/kubernetes/kubernetes-context.ts';
import { didYouMean } from '../shared/did-you-mean.ts';
import { SvcError } from '../shared/errors.ts';

/** A provider to check, or parts of it: contexts, SSH hosts, pools of SSH hosts, regions. */
export interface CheckTarget {
  readonly provider: string;
  /** As the user wrote them; empty for the whole provider. */
  readonly parts: readonly string[];
}

/** Settings with which providers are checked. */
export interface CheckSettings {
  readonly config: Config;
  readonly sshPools: readonly SshPool[];
}

/** Parses `k8s` or `aws/us-east-2`: each provider once, in order. One that is named alone is checked as a whole. */
export function readCheckTargets(words: readonly string[]): readonly CheckTarget[] {
  const targets = new Map<string, CheckTarget & { readonly isWhole: boolean }>();
  for (const word of words) {
    const [first = '', ...rest] = word.split('/');
    const lower = first.toLowerCase();
    const provider = lower === 'k8s' ? 'kubernetes' : lower;
    // Names of contexts may contain slashes.
    const part = rest.join('/');
    const { parts, isWhole } = targets.get(provider) ?? { parts: [], isWhole: false };
    const isWholeNow = isWhole || part === '';
    targets.set(provider, { provider, parts: isWholeNow ? [] : [...new Set([...parts, part])], isWhole: isWholeNow });
  }
  return [...targets.values()].map(({ provider, parts }) => ({ provider, parts }));
}

function partNames(provider: string, { config, sshPools }: CheckSettings, names: readonly string[]): readonly string[] {
  if (provider === 'kubernetes') {
    const { allowedContexts } = config.kubernetes;
    return Array.isArray(allowedContexts) ? names.filter((name) => allowedContexts.includes(name)) : names;
  }
  if (provider === 'ssh') return sshPools.flatMap(({ name, hosts }) => [name, ...hosts.map(({ host }) => `${name}/${host}`)]);
  const cloud = cloudSection(provider);
  if (cloud !== undefined) return config[cloud].regions ?? names;
  return config.local.regions.map(({ name }) => name);
}

/**
 * Settings that restrict a provider to the named parts. `names`: the contexts of the kubeconfig, or the catalogue's
 * regions. Throws SVC_NO_PLACE for an unknown part, and lists the known ones.
 */
export function narrowTo({ provider, parts }: CheckTarget, settings: CheckSettings, names: readonly string[]): CheckSettings {
  if (parts.length === 0) return settings;
  const known = partNames(provider, settings, names);
  const { config, sshPools } = settings;
  const isHost = (part: string): boolean => provider === 'ssh' && sshPools.some(({ hosts }) => hosts.some(({ host }) => host === part));
  for (const part of parts) if (!known.includes(part) && !isHost(part)) throw noSuchPart(provider, part, known, config);
  if (provider === 'kubernetes')
    return { ...settings, config: { ...config, kubernetes: { ...config.kubernetes, allowedContexts: parts } } };
  const cloud = cloudSection(provider);
  if (cloud !== undefined) return { ...settings, config: { ...config, [cloud]: { ...config[cloud], regions: parts } } };
  if (provider === 'ssh') return { ...settings, sshPools: onlyHosts(sshPools, parts) };
  const regions = config.local.regions.filter(({ name }) => parts.includes(name));
  return { ...settings, config: { ...config, local: { ...config.local, regions } } };
}

/** The user names an SSH host alone, or after its pool. */
function onlyHosts(pools: readonly SshPool[], parts: readonly string[]): readonly SshPool[] {
  return pools
    .map((pool) => ({
      ...pool,
      hosts: pool.hosts.filter(({ host }) => [pool.name, host, `${pool.name}/${host}`].some((name) => parts.includes(name))),
    }))
    .filter(({ hosts }) => hosts.length > 0);
}

const kinds: Readonly<Record<string, string>> = { kubernetes: 'context', ssh: 'pool or host', local: 'region' };

function noSuchPart(provider: string, part: string, known: readonly string[], { kubernetes }: Config): SvcError {
  const limit = provider === 'kubernetes' && Array.isArray(kubernetes.allowedContexts) ? ' that kubernetes.allowed_contexts allows' : '';
  const list = known.length === 0 ? 'there is none' : `known: ${known.join(', ')}`;
  const meant = didYouMean(part, known);
  return new SvcError(
    'SVC_NO_PLACE',
    `Provider '${provider}' has no ${kinds[provider] ?? (cloudSection(provider) === undefined ? 'part' : 'region')} '${part}'${limit} (${list}).`,
    {
      hint: `${meant === undefined ? '' : `Did you mean '${provider}/${meant}'? `}All of it: svc check ${provider}`,
    },
  );
}

/** The namespace of replicas in the named context, or in all contexts. */
export function namespaceOf({ parts: [context] }: CheckTarget, { kubernetes }: Config): string | undefined {
  return context === undefined ? kubernetes.namespace : kubernetesContextConfig(kubernetes, context).namespace;
}
