import { defaultConfig } from '../../src/domain/config.ts';
import type { ProviderContext } from '../../src/providers/registry.ts';
import { systemClock } from '../../src/shared/clock.ts';
import { noFence } from '../../src/shared/fence.ts';
import { homePaths } from '../../src/shared/paths.ts';
import { prepareHome } from '../../src/shared/prepare-home.ts';
import { systemRandom } from '../../src/shared/random.ts';

/** What a place is opened with in a home, which is made one: the default configuration and no pools, but for what a test changes. */
export function aProviderContext(home: string, change: Partial<ProviderContext> = {}): ProviderContext {
  const paths = homePaths(home, process.getuid?.() ?? 0);
  prepareHome(paths);
  return {
    paths,
    clock: systemClock,
    random: systemRandom,
    config: () => Promise.resolve(defaultConfig),
    sshPools: () => Promise.resolve([]),
    fence: noFence,
    ...change,
  };
}
