import { availableParallelism, totalmem } from 'node:os';
import { serviceLimit } from '../domain/limits.ts';
import { createPlaces } from '../provision/places.ts';
import { systemClock } from '../shared/clock.ts';
import { envVar } from '../shared/env.ts';
import type { Fence } from '../shared/fence.ts';
import type { Logger } from '../shared/log.ts';
import type { HomePaths } from '../shared/paths.ts';
import { systemRandom } from '../shared/random.ts';
import { svcVersion } from '../shared/version.ts';
import { loadConfig } from '../spec/load-config.ts';
import { loadSshPools } from '../spec/load-ssh-pools.ts';
import { openStore } from '../store/open-store.ts';
import type { StoreSettings } from '../store/store-settings.ts';
import type { DaemonContext } from './daemon-context.ts';
import { readHost } from './read-host.ts';
import { sweepFiles } from './service-files.ts';
import { peerHomes } from './shared-homes.ts';

const gib = 1_073_741_824;

/** What a daemon that leads begins with. */
export interface ContextOptions {
  readonly paths: HomePaths;
  readonly state: StoreSettings;
  readonly log: Logger;
  /** Undefined where there are no rivals. */
  readonly term: number | undefined;
  readonly fence: Fence;
}

/** Opens the state, from where on no former leader writes any more, and what the parts of the daemon share. */
export async function openContext({ paths, state, log, term, fence }: ContextOptions): Promise<DaemonContext> {
  const shared = { paths, clock: systemClock, random: systemRandom, config: () => loadConfig(paths.config) } as const;
  const store = await openStore({ ...state, clock: systemClock, term });
  if (term !== undefined) await store.raiseTerm(term);
  await sweepFiles(store);
  const host = readHost(paths.controllerHost);
  const peers = await peerHomes(store, paths, host === undefined);
  return {
    ...shared,
    store,
    log,
    startedAt: systemClock.now(),
    version: svcVersion,
    serviceLimit: configuredLimit() ?? serviceLimit(availableParallelism(), totalmem() / gib),
    host,
    term,
    fence,
    creating: new Set(),
    ...createPlaces({ ...shared, sshPools: () => loadSshPools(paths.sshPools), fence, peerHomes: peers }),
  };
}

/** Containers with limits that Node cannot see, and tests, may say how many services fit. */
function configuredLimit(): number | undefined {
  const limit = Number(envVar('SVC_SERVICE_LIMIT') ?? Number.NaN);
  return Number.isInteger(limit) && limit > 0 ? limit : undefined;
}
