import { rmSync } from 'node:fs';
import { getuid } from 'node:process';
import { serveApi, type ApiServer } from '../api/server.ts';
import { writeFileAtomic } from '../shared/atomic-file.ts';
import { isListenedOn } from '../shared/claim-socket.ts';
import { systemClock } from '../shared/clock.ts';
import { envVar, svcHome } from '../shared/env.ts';
import { toErrorReply } from '../shared/errors.ts';
import { createLogger, type Logger } from '../shared/log.ts';
import { startLoop } from '../shared/loop.ts';
import { homePaths, type HomePaths } from '../shared/paths.ts';
import { loadConfig } from '../spec/load-config.ts';
import { storeSettings } from '../store/store-settings.ts';
import { tryProcessLock, type ProcessLock } from '../store/process-lock.ts';
import { Clusters } from './cluster/clusters.ts';
import type { DaemonContext } from './daemon-context.ts';
import { DaemonLife } from './daemon-life.ts';
import { DaemonWatch } from './daemon-watch.ts';
import { findHosts } from './find-hosts.ts';
import { createHandlers } from './handlers.ts';
import { serveHealth, type ControllerRole } from './leadership/health-server.ts';
import { Lead } from './leadership/lead.ts';
import { leaseSource } from './leadership/lease-source.ts';
import { openContext } from './open-context.ts';
import { powerOff } from './power-off.ts';
import { ServiceProcesses } from './service-processes.ts';

/** How long a new daemon waits for one that is just leaving, ms. */
const takeOverMs = 20_000;
const takeOverPollMs = 100;

/** How long services' processes may take to come up before commands are answered all the same, ms. */
const processesUpMs = 5_000;
/** The same for a leader among several, which somebody may be waiting for. */
const takenOverUpMs = 1_500;

/** How long the reply to `stop` may take to get out, ms. */
const replyMs = 50;

/** The daemon: one per SVC_HOME. */
async function main(): Promise<void> {
  const paths = homePaths(svcHome(), getuid?.() ?? 0);
  const log = createLogger('controller');
  const lock = await lockHome(paths);
  if (lock === undefined) {
    log.info('another controller runs already');
    return;
  }
  for (const path of [paths.idleMark, paths.startError]) rmSync(path, { force: true });
  const configured = await loadConfig(paths.config);
  const state = storeSettings(paths, configured);
  const source = leaseSource(envVar('SVC_LEASE'), state);
  const life = new DaemonLife(source === undefined ? 'starting' : 'standby');
  obeySignals(life, log);
  await answerProbes(() => life.role);
  const lead = new Lead({ source, paths, clock: systemClock, log, signal: life.signal, exit: (code) => process.exit(code) });
  if (!(await lead.taken())) {
    lock.release();
    return;
  }
  const context = await openContext({ paths, state, log, term: lead.term, fence: lead.fence });
  const isIdle = await serve(context, lead, life, configured.serve.controller.autostop?.idleMinutes);
  lock.release();
  if (isIdle && !life.isToldToStop && context.host?.whenIdle === 'power-off') await powerOff(context);
}

/** The lock of the home, or undefined when another daemon has it and answers: whoever comes second leaves. */
async function lockHome(paths: HomePaths): Promise<ProcessLock | undefined> {
  const deadline = systemClock.monotonic() + takeOverMs;
  for (;;) {
    const lock = tryProcessLock(`${paths.home}/controller.lock`);
    if (lock !== undefined || systemClock.monotonic() > deadline || (await isListenedOn(paths.controllerSocket))) return lock;
    await systemClock.sleep(takeOverPollMs);
  }
}

function obeySignals(life: DaemonLife, log: Logger): void {
  process.once('SIGTERM', life.stopAsTold);
  process.once('SIGINT', life.stopAsTold);
  process.on('unhandledRejection', (error) => log.error({ err: error }, 'a failure that nobody waited for'));
}

/** Looks after all services and answers commands until this daemon is to end, and puts everything away. Tells whether nothing needs it any more. */
async function serve(context: DaemonContext, lead: Lead, life: DaemonLife, idleMinutes: number | undefined): Promise<boolean> {
  const { paths, store, clock, log, term } = context;
  const processes = new ServiceProcesses(context, findHosts(context, life.signal));
  lead.whenOver(() => processes.killReconcilers());
  const clusters = new Clusters(context);
  const watch = new DaemonWatch(context, processes, clusters, idleMinutes, () => life.end());
  await watch.tick();
  // Whoever brings the controller back with a command is to see what is, and not what was before the crash.
  await processes.allUp(term === undefined ? processesUpMs : takenOverUpMs);
  await clusters.recover();
  const api = await openApi(context, { processes, clusters, watch, life });
  rmSync(paths.startError, { force: true });
  life.leads();
  log.info({ version: context.version }, 'the controller is ready');
  const onError = (name: string, error: unknown): void => log.error({ err: error, loop: name }, 'a pass failed');
  await startLoop(watch, { clock, onError }, life.signal).ended;

  log.info('the controller stops; services that exist go on');
  // Whoever looks from now on need not start another one.
  if (watch.isIdle) writeFileAtomic(paths.idleMark, '');
  await api.close();
  const { isIdle } = watch;
  // A call that came in the last moment has put something up.
  if (!isIdle) rmSync(paths.idleMark, { force: true });
  // A service that went in the last moment has nobody else who would end its processes.
  await processes.removeGone().catch((error: unknown) => onError(watch.name, error));
  await Promise.all([processes.release(), clusters.release(), lead.left]);
  await store.close();
  return isIdle;
}

/** What commands are carried out with. */
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
    stop: () => clock.after(replyMs, life.stopAsTold),
  });
  return serveApi({ socketPath: paths.controllerSocket, handlers, log, clock, version });
}

/** For whoever watches over this process, such as Kubernetes, where it is told a port for that. */
async function answerProbes(role: () => ControllerRole): Promise<void> {
  const port = Number(envVar('SVC_HEALTH_PORT') ?? Number.NaN);
  if (Number.isInteger(port)) await serveHealth(port, role);
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
