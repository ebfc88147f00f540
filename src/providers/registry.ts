import type { Config } from '../domain/config.ts';
import type { Clock } from '../shared/clock.ts';
import type { SshPool } from '../domain/ssh-pool.ts';
import { writtenPlace } from '../domain/place-name.ts';
import { didYouMean } from '../shared/did-you-mean.ts';
import { SvcError } from '../shared/errors.ts';
import type { Fence } from '../shared/fence.ts';
import type { HomePaths } from '../shared/paths.ts';
import type { Random } from '../shared/random.ts';
import type { Provider } from './provider.ts';

/** What a place gets from outside. */
export interface ProviderContext {
  readonly paths: HomePaths;
  readonly clock: Clock;
  readonly random: Random;
  /** The configuration as it is now: read anew at each call, so that a change takes effect at once. */
  readonly config: () => Promise<Config>;
  /** The user's pools of hosts, read anew at each call as well. */
  readonly sshPools: () => Promise<readonly SshPool[]>;
  /** Checked right before anything is sent to a place. */
  readonly fence: Fence;
  /** Other homes of this machine that share their state with this one: local machines that they made are this home's as well. */
  readonly peerHomes?: readonly HomePaths[];
}

/** Every place there is, in the order in which `svc check` shows them. */
export const providerNames = ['aws', 'kubernetes', 'ssh', 'local'] as const;
export type ProviderName = (typeof providerNames)[number];

/** The place that takes part only when it is named or when there is no other: the machine one sits at. */
export const fallbackPlace: string = 'local' satisfies ProviderName;

const openers: Readonly<Record<ProviderName, (context: ProviderContext) => Promise<Provider>>> = {
  aws: async (context) => new (await import('./aws/index.ts')).AwsProvider(context),
  kubernetes: async (context) => new (await import('./kubernetes/index.ts')).KubernetesProvider(context),
  ssh: async (context) => new (await import('./ssh/index.ts')).SshProvider(context),
  local: async (context) => new (await import('./local/index.ts')).LocalProvider(context),
};

/** Loads one place, and only that one. Throws SVC_NO_PLACE for a name that is none. */
export async function openProvider(name: string, context: ProviderContext): Promise<Provider> {
  const known = providerNames.find((one) => one === name);
  if (known !== undefined) return openers[known](context);
  const written = providerNames.map(writtenPlace);
  const meant = didYouMean(name, [...written, ...providerNames]);
  const suggestion = meant === undefined ? '' : ` Did you mean '${writtenPlace(meant)}'?`;
  throw new SvcError('SVC_NO_PLACE', `There is no place called '${name}' (known: ${written.join(', ')}).${suggestion}`);
}
