import { defaultConfig } from '../../src/domain/config.ts';
import type { ProviderContext } from '../../src/providers/registry.ts';
import { systemClock } from '../../src/shared/clock.ts';
import { noFence } from '../../src/shared/fence.ts';
import { homePaths } from '../../src/shared/paths.ts';
import { prepareHome } from '../../src/shared/system/prepare-home.ts';
import { systemRandom } from '../../src/shared/random.ts';

/**
 * The context for opening a provider in a new home: the default configuration and no pools, except for a test's
 * changes.
 */
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
