import { availableParallelism, totalmem } from 'node:os';
import { serviceLimit } from '../domain/controller-placement.ts';
import { createProviders } from '../provision/providers.ts';
import { systemClock } from '../shared/clock.ts';
import { envVar } from '../shared/env.ts';
import { releaseReserve } from '../shared/system/disk-reserve.ts';
import type { Fence } from '../shared/fence.ts';
import type { Logger } from '../shared/log.ts';
import type { HomePaths } from '../shared/paths.ts';
import { systemRandom } from '../shared/random.ts';
import { bytesPerGb } from '../shared/units.ts';
import { svcVersion } from '../shared/version.ts';
import { loadConfig } from '../spec/load-config.ts';
import { loadSshPools } from '../spec/load-ssh-pools.ts';
import { openStore } from '../store/open-store.ts';
import type { StoreSettings } from '../store/store-settings.ts';
import type { DaemonContext } from './daemon-context.ts';
import { PortClaims } from './deploy/port-claims.ts';
import { readControllerHost } from './read-controller-host.ts';
import { sweepFiles } from './deploy/service-files.ts';
import { endReconcilersOfReplaced } from './replaced-state.ts';
import { peerHomes } from './shared-homes.ts';

interface ContextOptions {
  readonly paths: HomePaths;
  readonly state: StoreSettings;
  readonly log: Logger;
  /** Undefined where controllers have no rivals. */
  readonly term: number | undefined;
  readonly fence: Fence;
}

/** Opens the state and builds what the parts of the daemon share. From then on no former leader can write. */
export async function openContext({ paths, state, log, term, fence }: ContextOptions): Promise<DaemonContext> {
  const shared = { paths, clock: systemClock, random: systemRandom, config: () => loadConfig(paths.config) } as const;
  if (state.database === undefined) await endReconcilersOfReplaced(paths, log);
  const store = await openStore({ ...state, clock: systemClock, term, makeSpace: () => releaseReserve(paths) });
  if (store.file?.replaced !== undefined)
    log.warn({ why: store.file.replaced, setAside: store.file.setAside }, 'the state database is not the one that was used last');
  if (term !== undefined) await store.raiseTerm(term);
  await sweepFiles(store);
  const controllerHost = readControllerHost(paths.controllerHost);
  const peers = await peerHomes(store, paths, controllerHost === undefined);
  return {
    ...shared,
    store,
    log,
    startedAt: systemClock.now(),
    version: svcVersion,
    serviceLimit: configuredLimit() ?? serviceLimit(availableParallelism(), totalmem() / bytesPerGb),
    controllerHost,
    term,
    fence,
    creating: new Set(),
    ports: new PortClaims({ paths, clock: systemClock }),
    ...createProviders({ ...shared, sshPools: () => loadSshPools(paths.sshPools), fence, peerHomes: peers }),
  };
}

/** Configured service limit: for containers whose limits Node.js cannot see, and for tests. */
function configuredLimit(): number | undefined {
  const limit = Number(envVar('SVC_SERVICE_LIMIT') ?? Number.NaN);
  return Number.isInteger(limit) && limit > 0 ? limit : undefined;
}
