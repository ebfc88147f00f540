import type { Config } from '../domain/config.ts';
import { kubernetesContextConfig } from '../domain/kubernetes-context.ts';
import type { SshPool } from '../domain/ssh-pool.ts';
import { didYouMean } from '../shared/did-you-mean.ts';
import { SvcError } from '../shared/errors.ts';

/** A place that is to be looked at, or parts of it: contexts, hosts or pools of hosts, regions. */
export interface CheckTarget {
  readonly place: string;
  /** As they were written; empty for all of it. */
  readonly parts: readonly string[];
}

/** What places are looked at with. */
export interface CheckSettings {
  readonly config: Config;
  readonly sshPools: readonly SshPool[];
}

/**
 * Places as users write them, `k8s` or `aws/us-east-2`: each place once, in the order of their first mention. One that is named as a whole is looked at as
 * a whole.
 */
export function readCheckTargets(words: readonly string[]): readonly CheckTarget[] {
  const targets = new Map<string, CheckTarget & { readonly isWhole: boolean }>();
  for (const word of words) {
    const [first = '', ...rest] = word.split('/');
    const lower = first.toLowerCase();
    const place = lower === 'k8s' ? 'kubernetes' : lower;
    // Contexts may have slashes in their names.
    const part = rest.join('/');
    const { parts, isWhole } = targets.get(place) ?? { parts: [], isWhole: false };
    const isWholeNow = isWhole || part === '';
    targets.set(place, { place, parts: isWholeNow ? [] : [...new Set([...parts, part])], isWhole: isWholeNow });
  }
  return [...targets.values()].map(({ place, parts }) => ({ place, parts }));
}

/** What the parts of a place may be called. */
function partNames(place: string, { config, sshPools }: CheckSettings, names: readonly string[]): readonly string[] {
  if (place === 'kubernetes') {
    const { allowedContexts } = config.kubernetes;
    return Array.isArray(allowedContexts) ? names.filter((name) => allowedContexts.includes(name)) : names;
  }
  if (place === 'ssh') return sshPools.flatMap(({ name, hosts }) => [name, ...hosts.map(({ host }) => `${name}/${host}`)]);
  if (place === 'aws') return config.aws.regions ?? names;
  return config.local.regions.map(({ name }) => name);
}

/**
 * The settings with which a place finds only the parts that were named. `names`: the contexts of the kubeconfig, or the regions of the catalogue. Throws
 * SVC_NO_PLACE for a part that there is not, with those there are.
 */
export function narrowTo({ place, parts }: CheckTarget, settings: CheckSettings, names: readonly string[]): CheckSettings {
  if (parts.length === 0) return settings;
  const known = partNames(place, settings, names);
  const { config, sshPools } = settings;
  const isHost = (part: string): boolean => place === 'ssh' && sshPools.some(({ hosts }) => hosts.some(({ host }) => host === part));
  for (const part of parts) if (!known.includes(part) && !isHost(part)) throw noSuchPart(place, part, known, config);
  if (place === 'kubernetes') return { ...settings, config: { ...config, kubernetes: { ...config.kubernetes, allowedContexts: parts } } };
  if (place === 'aws') return { ...settings, config: { ...config, aws: { ...config.aws, regions: parts } } };
  if (place === 'ssh') return { ...settings, sshPools: onlyHosts(sshPools, parts) };
  const regions = config.local.regions.filter(({ name }) => parts.includes(name));
  return { ...settings, config: { ...config, local: { ...config.local, regions } } };
}

/** A host is named by itself, or after its pool. */
function onlyHosts(pools: readonly SshPool[], parts: readonly string[]): readonly SshPool[] {
  return pools
    .map((pool) => ({
      ...pool,
      hosts: pool.hosts.filter(({ host }) => [pool.name, host, `${pool.name}/${host}`].some((name) => parts.includes(name))),
    }))
    .filter(({ hosts }) => hosts.length > 0);
}

const kinds: Readonly<Record<string, string>> = { kubernetes: 'context', ssh: 'pool or host', aws: 'region', local: 'region' };

function noSuchPart(place: string, part: string, known: readonly string[], { kubernetes }: Config): SvcError {
  const limit = place === 'kubernetes' && Array.isArray(kubernetes.allowedContexts) ? ' that kubernetes.allowed_contexts allows' : '';
  const list = known.length === 0 ? 'there is none' : `known: ${known.join(', ')}`;
  const meant = didYouMean(part, known);
  return new SvcError('SVC_NO_PLACE', `The place '${place}' has no ${kinds[place] ?? 'part'} '${part}'${limit} (${list}).`, {
    hint: `${meant === undefined ? '' : `Did you mean '${place}/${meant}'? `}All of it: svc check ${place}`,
  });
}

/** The namespace of replicas in the context that is named, or in all of them. */
export function namespaceOf({ parts: [context] }: CheckTarget, { kubernetes }: Config): string | undefined {
  return context === undefined ? kubernetes.namespace : kubernetesContextConfig(kubernetes, context).namespace;
}
