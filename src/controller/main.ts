import { readdirSync, rmSync } from 'node:fs';
import { availableParallelism, totalmem } from 'node:os';
import { getuid } from 'node:process';
import { serveApi } from '../api/server.ts';
import type { Config } from '../domain/config.ts';
import { serviceLimit } from '../domain/limits.ts';
import type { Provider } from '../providers/provider.ts';
import { openProvider, providerNames } from '../providers/registry.ts';
import { writeFileAtomic } from '../shared/atomic-file.ts';
import { systemClock } from '../shared/clock.ts';
import { envVar, svcHome } from '../shared/env.ts';
import { hasErrno, toErrorReply } from '../shared/errors.ts';
import { createLogger } from '../shared/log.ts';
import { startLoop } from '../shared/loop.ts';
import { homePaths } from '../shared/paths.ts';
import { systemRandom } from '../shared/random.ts';
import { svcVersion } from '../shared/version.ts';
import { loadConfig } from '../spec/load-config.ts';
import { openStore } from '../store/open-store.ts';
import { tryProcessLock } from '../store/process-lock.ts';
import { Clusters } from './cluster/clusters.ts';
import { finishSnapshots } from './create-service.ts';
import type { DaemonContext } from './daemon-context.ts';
import { createHandlers } from './handlers.ts';
import { idleStopMs, nextIdle, type IdleState } from './idle-stop.ts';
import { ServiceProcesses } from './service-processes.ts';

/** How often the daemon looks whether services came or went, ms. */
const lookEveryMs = 250;

const gib = 1_073_741_824;

/** The daemon: one per SVC_HOME. Whoever comes second leaves at once. */
async function main(): Promise<void> {
  const clock = systemClock;
  const paths = homePaths(svcHome(), getuid?.() ?? 0);
  const log = createLogger('controller');
  const lock = tryProcessLock(`${paths.home}/controller.lock`);
  if (lock === undefined) {
    log.info('another controller runs already');
    return;
  }
  rmSync(paths.idleMark, { force: true });
  const store = await openStore({ path: paths.database, clock });
  const config = async (): Promise<Config> => loadConfig(paths.config);
  const { autostop } = (await config()).serve.controller;
  const providers = new Map<string, Promise<Provider>>();
  const provider = (name: string): Promise<Provider> => {
    const opened = providers.get(name) ?? openProvider(name, { paths, clock, random: systemRandom, config });
    providers.set(name, opened);
    return opened;
  };
  const context: DaemonContext = {
    paths,
    store,
    clock,
    random: systemRandom,
    log,
    startedAt: clock.now(),
    version: svcVersion,
    // Tests and containers with limits that Node cannot see may say otherwise.
    serviceLimit: Number(envVar('SVC_SERVICE_LIMIT') ?? serviceLimit(availableParallelism(), totalmem() / gib)),
    config,
    providers: () => Promise.all(providerNames.map(provider)),
    provider,
  };
  const stop = new AbortController();
  process.once('SIGTERM', () => stop.abort());
  process.once('SIGINT', () => stop.abort());
  process.on('unhandledRejection', (error) => log.error({ err: error }, 'a failure that nobody waited for'));

  const services = await store.services.list();
  await finishSnapshots(context, foldersIn(paths.servicesDir), services);
  const processes = new ServiceProcesses(context);
  const clusters = new Clusters(context);
  let idle: IdleState = { since: null };
  const idleMs = (): number | null => idleStopMs(idle, autostop?.idleMinutes, clock.now());
  const look = async (): Promise<void> => {
    const now = await store.services.list();
    for (const service of now) await processes.ensure(service);
    await processes.removeGone(now);
    idle = nextIdle(idle, now.length > 0 || (await store.clusters.list()).length > 0, clock.now());
    if (idleMs() === 0) stop.abort();
  };
  await look();
  await clusters.resume();
  const api = await serveApi({
    socketPath: paths.controllerSocket,
    handlers: createHandlers({ context, processes, clusters, idleStopMs: idleMs, stop: () => clock.after(50, () => stop.abort()) }),
    log,
    clock,
    version: svcVersion,
  });
  rmSync(paths.startError, { force: true });
  log.info({ version: svcVersion, services: services.length }, 'the controller is ready');
  const loop = startLoop(
    { name: 'look', everyMs: lookEveryMs, tick: look },
    { clock, onError: (name, error) => log.error({ err: error, loop: name }, 'a pass failed') },
    stop.signal,
  );
  await loop.ended;
  log.info('the controller stops; services that exist go on');
  if (idle.since !== null) writeFileAtomic(paths.idleMark, '');
  await api.close();
  await Promise.all([processes.release(), clusters.release()]);
  await store.close();
  lock.release();
}

function foldersIn(path: string): readonly string[] {
  try {
    return readdirSync(path);
  } catch (error) {
    if (hasErrno(error, 'ENOENT')) return [];
    throw error;
  }
}

/** Whoever started the daemon reads there why it did not come up. */
function reportStartError(error: unknown): void {
  createLogger('controller').error({ err: error }, 'the controller ends with an error');
  writeFileAtomic(homePaths(svcHome(), getuid?.() ?? 0).startError, JSON.stringify(toErrorReply(error)));
}

try {
  await main();
} catch (error) {
  reportStartError(error);
  process.exit(70);
}
process.exit(0);
