import { rmSync } from 'node:fs';
import { getuid } from 'node:process';
import { serveApi, type ApiServer } from '../api/server.ts';
import { readJsonFile, writeFileAtomic } from '../shared/system/files.ts';
import { isListenedOn } from '../shared/system/claim-socket.ts';
import { identifyProcess } from '../shared/system/process-identity.ts';
import { systemClock } from '../shared/clock.ts';
import { envVar, svcHome } from '../shared/env.ts';
import { isDiskFull, keepReserve, scarceSpace, withReserve } from '../shared/system/disk-reserve.ts';
import { hasErrno, SvcError, toErrorReply } from '../shared/errors.ts';
import { createLogger, type Logger } from '../shared/log.ts';
import { startLoop, type Loop } from '../shared/loop.ts';
import { isObject } from '../shared/json.ts';
import { quoteWord } from '../remote/shell-quote.ts';
import { homePaths, type HomePaths } from '../shared/paths.ts';
import { loadConfig } from '../spec/load-config.ts';
import { storeSettings } from '../store/store-settings.ts';
import { tryProcessLock, type ProcessLock } from '../shared/system/process-lock.ts';
import { Clusters } from './cluster/clusters.ts';
import type { DaemonContext } from './daemon-context.ts';
import { DaemonLife } from './daemon-life.ts';
import { DaemonWatch } from './daemon-watch.ts';
import { findEdgeProxies } from './edge-proxy/members.ts';
import { createHandlers } from './handlers.ts';
import { serveHealth, type ControllerRole } from './leadership/health-server.ts';
import { Leadership } from './leadership/leadership.ts';
import { leaseSource } from './leadership/lease-source.ts';
import { openContext } from './open-context.ts';
import { powerOff } from './power-off.ts';
import { renewWhenReplaced } from './replaced-state.ts';
import { retryAfterStart, retryAtNextStart } from './retry-service.ts';
import { ServiceProcesses } from './supervise/service-processes.ts';
import { sweepTemporaryFiles } from './temporary-files.ts';

/** How long a new daemon waits for the previous one to end, ms. */
const takeOverMs = 20_000;
const takeOverPollMs = 100;

/** How long the services' processes may take to start before the daemon answers commands anyway, ms. */
const processesUpMs = 5_000;
/** The same for a leader with rivals: clients may be waiting for the failover. */
const takenOverUpMs = 1_500;

/** Time to send the reply to `stop`, ms. */
const replyMs = 50;

async function main(): Promise<void> {
  const paths = homePaths(svcHome(), getuid?.() ?? 0);
  const log = createLogger('controller');
  const lock = await lockHome(paths);
  if (lock === undefined) {
    log.info('another controller runs already');
    return;
  }
  refuseUnfinishedRestore(paths);
  for (const path of [paths.idleMark, paths.startError]) rmSync(path, { force: true });
  await withReserve(paths, () => writeFileAtomic(paths.controllerIdentity, JSON.stringify(identifyProcess(process.pid))));
  const configured = await loadConfig(paths.config);
  const state = storeSettings(paths, configured);
  const source = leaseSource(envVar('SVC_LEASE'), state);
  const life = new DaemonLife(source === undefined ? 'starting' : 'standby');
  obeySignals(life, log);
  await answerProbes(() => life.role);
  const leadership = new Leadership({ source, paths, clock: systemClock, log, signal: life.signal, exit: (code) => process.exit(code) });
  if (!(await leadership.acquired())) {
    lock.release();
    return;
  }
  const context = await openContext({ paths, state, log, term: leadership.term, fence: leadership.fence });
  renewWhenReplaced(context);
  const swept = sweepTemporaryFiles(paths, systemClock.now());
  if (swept > 0) log.info({ files: swept }, 'temporary files of killed processes were removed');
  const isIdle = await serve(context, leadership, life, configured.serve.controller.autostop?.idleMinutes);
  lock.release();
  if (isIdle && !life.isStopRequested && context.controllerHost?.whenIdle === 'power-off') await powerOff(context);
}

/** Throws SVC_HOME_UNUSABLE after a killed restore: the files of two states are mixed. */
function refuseUnfinishedRestore({ home, restoreMark }: HomePaths): void {
  const mark = readJsonFile(restoreMark);
  if (mark === undefined) return;
  const file = isObject(mark.value) ? String(mark.value['file']) : 'FILE';
  throw new SvcError('SVC_HOME_UNUSABLE', `${home} has only a part of the backup ${file}: its restore was interrupted.`, {
    hint: `Finish it: svc controller restore ${quoteWord(file)}`,
  });
}

/** The lock of the home. Undefined when another daemon holds it and answers; then this daemon exits. */
async function lockHome(paths: HomePaths): Promise<ProcessLock | undefined> {
  const deadline = systemClock.monotonic() + takeOverMs;
  for (;;) {
    const lock = tryProcessLock(`${paths.home}/controller.lock`);
    if (lock !== undefined || systemClock.monotonic() > deadline || (await isListenedOn(paths.controllerSocket))) return lock;
    await systemClock.sleep(takeOverPollMs);
  }
}

function obeySignals(life: DaemonLife, log: Logger): void {
  process.once('SIGTERM', life.requestStop);
  process.once('SIGINT', life.requestStop);
  process.on('unhandledRejection', (error) => log.error({ err: error }, 'an unhandled failure'));
}

/** Supervises all services and answers commands until this daemon must end. Returns whether the daemon is idle. */
async function serve(context: DaemonContext, leadership: Leadership, life: DaemonLife, idleMinutes: number | undefined): Promise<boolean> {
  const { paths, store, clock, log, term } = context;
  const processes = new ServiceProcesses(context, findEdgeProxies(context, life.signal));
  leadership.whenOver(() => processes.killReconcilers());
  const clusters = new Clusters(context, processes.leftovers);
  await retryAfterStart(context);
  const watch = new DaemonWatch(context, processes, clusters, idleMinutes, () => life.end());
  await watch.tick();
  // A command that restarts the controller must see the current state, not the state before the crash.
  await processes.allUp(term === undefined ? processesUpMs : takenOverUpMs);
  await clusters.recover();
  const api = await openApi(context, { processes, clusters, watch, life });
  rmSync(paths.startError, { force: true });
  life.leads();
  log.info({ version: context.version }, 'the controller is ready');
  const onError = (name: string, error: unknown): void => log.error({ err: error, loop: name }, 'a pass failed');
  startLoop(diskLoop(context), { clock, onError }, life.signal);
  await startLoop(watch, { clock, onError }, life.signal).ended;

  log.info('the controller stops; services that exist go on');
  // Another controller may lead by now and has done its own start.
  if (life.isStopRequested) await retryAtNextStart(context).catch((error: unknown) => onError('retry at the next start', error));
  // A client that checks the mark from now on need not start another daemon.
  if (watch.isIdle) writeFileAtomic(paths.idleMark, '');
  await api.close();
  const { isIdle } = watch;
  // A command in the last moment deployed something.
  if (!isIdle) rmSync(paths.idleMark, { force: true });
  // Otherwise the processes of a service removed in the last moment would never end.
  await processes.removeGone().catch((error: unknown) => onError(watch.name, error));
  await Promise.all([processes.release(), clusters.release(), leadership.released]);
  await store.close();
  return isIdle;
}

/** Poll interval for free disk space, ms: a program can fill a disk within seconds. */
const diskPollMs = 1_000;

/** Reserves disk space while there is some, for use when the disk is full. Logs when the disk is full. */
function diskLoop({ paths, log, store }: DaemonContext): Loop {
  let wasFull = false;
  return {
    name: 'disk',
    everyMs: diskPollMs,
    async tick() {
      const isFull = isDiskFull(paths);
      if (isFull && !wasFull)
        log.warn({ code: 'SVC_NO_SPACE', folder: paths.home }, 'the disk is full: replicas and services can be removed');
      wasFull = isFull;
      if (scarceSpace(paths) !== undefined) return;
      keepReserve(paths);
      await store.keepOwnSpace();
    },
  };
}

interface Parts {
  readonly processes: ServiceProcesses;
  readonly clusters: Clusters;
  readonly watch: DaemonWatch;
  readonly life: DaemonLife;
}

function openApi(context: DaemonContext, { processes, clusters, watch, life }: Parts): Promise<ApiServer> {
  const { paths, log, clock, version } = context;
  const handlers = createHandlers({
    context,
    processes,
    clusters,
    whileBusy: (work) => watch.whileBusy(work),
    idleStopMs: () => watch.idleStopMs(),
    stop: () => clock.after(replyMs, life.requestStop),
  });
  return withReserve(paths, () => serveApi({ socketPath: paths.controllerSocket, handlers, log, clock, version }));
}

async function answerProbes(role: () => ControllerRole): Promise<void> {
  const port = Number(envVar('SVC_HEALTH_PORT') ?? Number.NaN);
  if (Number.isInteger(port)) await serveHealth(port, role);
}

function reportStartError(error: unknown): void {
  createLogger('controller').error({ err: error }, 'the controller ends with an error');
  try {
    writeFileAtomic(homePaths(svcHome(), getuid?.() ?? 0).startError, JSON.stringify(toErrorReply(error)));
  } catch (failure) {
    // On a full disk the client sees the cause by itself.
    if (!hasErrno(failure, 'ENOSPC', 'EDQUOT')) throw failure;
  }
}

try {
  await main();
} catch (error) {
  reportStartError(error);
  process.exit(70);
}
process.exit(0);
