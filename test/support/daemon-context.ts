import { join } from 'node:path';
import { pino } from 'pino';
import type { DaemonContext } from '../../src/controller/daemon-context.ts';
import { PortClaims } from '../../src/controller/deploy/port-claims.ts';
import { defaultConfig } from '../../src/domain/config.ts';
import { systemClock, type Clock } from '../../src/shared/clock.ts';
import { noFence } from '../../src/shared/fence.ts';
import { homePaths } from '../../src/shared/paths.ts';
import { seededRandom } from '../../src/shared/random.ts';
import type { Store } from '../../src/store/store.ts';
import { providersOf } from './providers.ts';

/** The shared context of a daemon's parts, by default without providers. */
export function aDaemonContext(
  home: string,
  store: Store,
  { clock = systemClock, ...given }: Partial<Omit<DaemonContext, 'clock'>> & { readonly clock?: Clock } = {},
): DaemonContext {
  const paths = homePaths(home, process.getuid?.() ?? 0);
  return {
    paths,
    store,
    clock,
    random: seededRandom(1),
    log: pino({ level: 'silent' }),
    startedAt: 0,
    version: 'test',
    serviceLimit: 16,
    controllerHost: undefined,
    term: undefined,
    fence: noFence,
    creating: new Set(),
    ports: new PortClaims({ paths, clock, dir: join(home, 'ports') }),
    config: () => Promise.resolve(defaultConfig),
    ...providersOf(),
    ...given,
  };
}
