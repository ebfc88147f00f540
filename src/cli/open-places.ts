import type { Places } from '../provision/places.ts';
import type { Clock } from '../shared/clock.ts';
import type { HomePaths } from '../shared/paths.ts';
import { systemRandom } from '../shared/random.ts';

/** The places as this command sees them. What they need is loaded now, as most commands need none. */
export async function openPlaces(paths: HomePaths, clock: Clock): Promise<Places> {
  const [{ createPlaces }, { loadConfig }, { loadSshPools }] = await Promise.all([
    import('../provision/places.ts'),
    import('../spec/load-config.ts'),
    import('../spec/load-ssh-pools.ts'),
  ]);
  return createPlaces({
    paths,
    clock,
    random: systemRandom,
    config: async () => loadConfig(paths.config),
    sshPools: async () => loadSshPools(paths.sshPools),
  });
}
