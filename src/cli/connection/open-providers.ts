import { createProviders, type Providers } from '../../provision/providers.ts';
import type { Clock } from '../../shared/clock.ts';
import type { HomePaths } from '../../shared/paths.ts';
import { systemRandom } from '../../shared/random.ts';
import { loadConfig } from '../../spec/load-config.ts';
import { loadSshPools } from '../../spec/load-ssh-pools.ts';
import { noFence } from '../../shared/fence.ts';
import { commandEnd } from './connection.ts';

const opened = new WeakMap<HomePaths, Providers>();

/** The providers as this command sees them. All its parts share them, so that a slow provider delays it only once. */
export function openProviders(paths: HomePaths, clock: Clock): Providers {
  const known = opened.get(paths);
  if (known !== undefined) return known;
  const context = {
    paths,
    clock,
    random: systemRandom,
    config: async () => loadConfig(paths.config),
    sshPools: async () => loadSshPools(paths.sshPools),
    fence: noFence,
  };
  const providers = createProviders(context, commandEnd.signal);
  opened.set(paths, providers);
  return providers;
}
