import { createPlaces, type Places } from '../provision/places.ts';
import type { Clock } from '../shared/clock.ts';
import type { HomePaths } from '../shared/paths.ts';
import { systemRandom } from '../shared/random.ts';
import { loadConfig } from '../spec/load-config.ts';
import { loadSshPools } from '../spec/load-ssh-pools.ts';
import { noFence } from '../shared/fence.ts';

/** The places as this command sees them. */
export function openPlaces(paths: HomePaths, clock: Clock): Places {
  return createPlaces({
    paths,
    clock,
    random: systemRandom,
    config: async () => loadConfig(paths.config),
    sshPools: async () => loadSshPools(paths.sshPools),
    fence: noFence,
  });
}
