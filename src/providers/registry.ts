import type { Config, SshPool } from '../domain/config.ts';
import type { Clock } from '../shared/clock.ts';
import { infraName } from '../domain/location-name.ts';
import { didYouMean } from '../shared/did-you-mean.ts';
import { SvcError } from '../shared/errors.ts';
import type { Fence } from '../shared/fence.ts';
import type { HomePaths } from '../shared/paths.ts';
import type { Random } from '../shared/random.ts';
import type { Provider } from './provider.ts';

/** A provider's dependencies. */
export interface ProviderContext {
  readonly paths: HomePaths;
  readonly clock: Clock;
  readonly random: Random;
  /** Read at each call, so that a change takes effect at once. */
  readonly config: () => Promise<Config>;
  /** Read at each call. */
  readonly sshPools: () => Promise<readonly SshPool[]>;
  /** Checked right before each request to a provider. */
  readonly fence: Fence;
  /** Homes on this machine whose state this home shares: their local machines belong to it too. */
  readonly peerHomes?: readonly HomePaths[];
}

/** In the order in which `svc check` shows them. */
export const providerNames = ['aws', 'kubernetes', 'ssh', 'local'] as const;
export type ProviderName = (typeof providerNames)[number];

/** Takes part only when it is named or is the only provider. */
export const fallbackProvider: string = 'local' satisfies ProviderName;

const openers: Readonly<Record<ProviderName, (context: ProviderContext) => Promise<Provider>>> = {
  aws: async (context) => new (await import('./aws/index.ts')).AwsProvider(context),
  kubernetes: async (context) => new (await import('./kubernetes/index.ts')).KubernetesProvider(context),
  ssh: async (context) => new (await import('./ssh/index.ts')).SshProvider(context),
  local: async (context) => new (await import('./local/index.ts')).LocalProvider(context),
};

/** Loads only the one provider. Throws SVC_NO_PLACE for an unknown name. */
export async function openProvider(name: string, context: ProviderContext): Promise<Provider> {
  const known = providerNames.find((one) => one === name);
  if (known !== undefined) return openers[known](context);
  const written = providerNames.map(infraName);
  const meant = didYouMean(name, [...written, ...providerNames]);
  const suggestion = meant === undefined ? '' : ` Did you mean '${infraName(meant)}'?`;
  throw new SvcError('SVC_NO_PLACE', `There is no provider called '${name}' (known: ${written.join(', ')}).${suggestion}`);
}
