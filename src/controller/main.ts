import { rmSync } from 'node:fs';
import { connect } from 'node:net';
import { availableParallelism, totalmem } from 'node:os';
import { getuid } from 'node:process';
import { serveApi } from '../api/server.ts';
import type { Config } from '../domain/config.ts';
import { serviceLimit } from '../domain/limits.ts';
import { writeFileAtomic } from '../shared/atomic-file.ts';
import { systemClock } from '../shared/clock.ts';
import { envVar, svcHome } from '../shared/env.ts';
import { toErrorReply } from '../shared/errors.ts';
import { createLogger } from '../shared/log.ts';
import { startLoop } from '../shared/loop.ts';
import { homePaths, type HomePaths } from '../shared/paths.ts';
import { systemRandom } from '../shared/random.ts';
import { svcVersion } from '../shared/version.ts';
import { loadConfig } from '../spec/load-config.ts';
import { loadSshPools } from '../spec/load-ssh-pools.ts';
import { openStore } from '../store/open-store.ts';
import { tryProcessLock, type ProcessLock } from '../store/process-lock.ts';
import { Clusters } from './cluster/clusters.ts';
import type { DaemonContext } from './daemon-context.ts';
import { DaemonWatch } from './daemon-watch.ts';
import { createHandlers } from './handlers.ts';
import { createPlaces } from '../provision/places.ts';
import { powerOff } from './power-off.ts';
import { readHost } from './read-host.ts';
import { ServiceProcesses } from './service-processes.ts';
const gib = 1_073_741_824;

/** How long a new daemon waits for one that is just leaving, ms. */
const takeOverMs = 20_000;
const takeOverPollMs = 100;

/** The lock of the home, or undefined when another daemon has it and answers: whoever comes second leaves. */
async function lockHome(paths: HomePaths): Promise<ProcessLock | undefined> {
  const deadline = systemClock.monotonic() + takeOverMs;
  for (;;) {
    const lock = tryProcessLock(`${paths.home}/controller.lock`);
    if (lock !== undefined || systemClock.monotonic() > deadline || (await answers(paths.controllerSocket))) return lock;
    await systemClock.sleep(takeOverPollMs);
  }
}

/** The daemon: one per SVC_HOME. */
async function main(): Promise<void> {
  const clock = systemClock;
  const paths = homePaths(svcHome(), getuid?.() ?? 0);
  const log = createLogger('controller');
  const lock = await lockHome(paths);
  if (lock === undefined) {
    log.info('another controller runs already');
    return;
  }
  rmSync(paths.idleMark, { force: true });
  const store = await openStore({ path: paths.database, clock });
  const config = (): Promise<Config> => loadConfig(paths.config);
  const { autostop } = (await config()).serve.controller;
  const context: DaemonContext = {
    paths,
    store,
    clock,
    random: systemRandom,
    log,
    startedAt: clock.now(),
    version: svcVersion,
    serviceLimit: configuredLimit() ?? serviceLimit(availableParallelism(), totalmem() / gib),
    host: readHost(paths.controllerHost),
    creating: new Set(),
    config,
    ...createPlaces({ paths, clock, random: systemRandom, config, sshPools: () => loadSshPools(paths.sshPools) }),
  };
  const stop = new AbortController();
  let isToldToStop = false;
  const stopAsTold = (): void => {
    isToldToStop = true;
    stop.abort();
  };
  process.once('SIGTERM', stopAsTold);
  process.once('SIGINT', stopAsTold);
  process.on('unhandledRejection', (error) => log.error({ err: error }, 'a failure that nobody waited for'));

  const processes = new ServiceProcesses(context);
  const clusters = new Clusters(context);
  const watch = new DaemonWatch(context, processes, clusters, autostop?.idleMinutes, () => stop.abort());
  await watch.tick();
  // Whoever brings the controller back with a command is to see what is, and not what was before the crash.
  await processes.allUp(processesUpMs);
  await clusters.recover();
  const api = await serveApi({
    socketPath: paths.controllerSocket,
    handlers: createHandlers({
      context,
      processes,
      clusters,
      whileBusy: (work) => watch.whileBusy(work),
      idleStopMs: () => watch.idleStopMs(),
      stop: () => clock.after(replyMs, stopAsTold),
    }),
    log,
    clock,
    version: svcVersion,
  });
  rmSync(paths.startError, { force: true });
  log.info({ version: svcVersion }, 'the controller is ready');
  const onError = (name: string, error: unknown): void => log.error({ err: error, loop: name }, 'a pass failed');
  await startLoop(watch, { clock, onError }, stop.signal).ended;
  log.info('the controller stops; services that exist go on');
  const isDone = watch.isIdle;
  if (isDone) writeFileAtomic(paths.idleMark, '');
  await api.close();
  await Promise.all([processes.release(), clusters.release()]);
  await store.close();
  lock.release();
  if (isDone && !isToldToStop && context.host?.whenIdle === 'power-off') await powerOff(context);
}

/** How long services' processes may take to come up before commands are answered all the same, ms. */
const processesUpMs = 5_000;

/** How long the reply to `stop` may take to get out, ms. */
const replyMs = 50;

/** Containers with limits that Node cannot see, and tests, may say how many services fit. */
function configuredLimit(): number | undefined {
  const limit = Number(envVar('SVC_SERVICE_LIMIT') ?? Number.NaN);
  return Number.isInteger(limit) && limit > 0 ? limit : undefined;
}

/** Whether somebody accepts connections there. */
function answers(socketPath: string): Promise<boolean> {
  const { promise, resolve } = Promise.withResolvers<boolean>();
  const socket = connect(socketPath);
  socket.once('connect', () => resolve(true));
  socket.once('error', () => resolve(false));
  return promise.finally(() => socket.destroy());
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
