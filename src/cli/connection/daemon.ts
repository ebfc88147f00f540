import { spawn, type ChildProcess } from 'node:child_process';
import { closeSync, readFileSync, statSync } from 'node:fs';
import { isErrorReply, toSvcError } from '../../api/client-exchange.ts';
import type { Clock } from '../../shared/clock.ts';
import { quoteWord } from '../../remote/shell-quote.ts';
import { wholeEnv } from '../../shared/env.ts';
import { isDiskFull } from '../../shared/system/disk-reserve.ts';
import { hasErrno, messageOf, SvcError } from '../../shared/errors.ts';
import { openLog, rotateLog } from '../../shared/system/log-file.ts';
import type { HomePaths } from '../../shared/paths.ts';
import { prepareHome } from '../../shared/system/prepare-home.ts';
import { entryBelow } from '../../shared/program-files.ts';

/** The controller may wait 20 s for a predecessor that is ending, and starts the processes of services first. */
const startTimeoutMs = 60_000;
/** How long to wait for a controller that reports another leader, ms: a dead leader keeps the lease for 10 s more. */
const standByMs = 15_000;
/** How long a controller of the service manager may take to answer before this process starts one, ms. */
const managedMs = 35_000;
const pollMs = 25;

const shownLogLines = 20;

interface DaemonDeps<Health> {
  readonly clock: Clock;
  readonly signal: AbortSignal;
  /** Undefined while no process listens on the controller's socket. */
  readonly probe: () => Promise<Health | undefined>;
  /** The program to run; by default the controller. */
  readonly entry?: string;
  /** Has the machine's service manager start the controller; false: it cannot, so this process starts it. */
  readonly startByManager?: () => Promise<boolean>;
  /** Prints a line for the user. */
  readonly say?: (text: string) => void;
}

/**
 * The health of this home's controller; starts one when none runs. Any number of processes may do so at once: one of
 * the controllers remains, the others exit with 0. If that one ends before it answers, another is started. Throws the
 * error that the controller recorded at its end, otherwise SVC_CONTROLLER_START with the end of its log.
 */
export async function ensureController<Health>(paths: HomePaths, deps: DaemonDeps<Health>): Promise<Health> {
  const running = await deps.probe();
  if (running !== undefined) return running;
  prepareHome(paths);
  const earlier = changeOf(paths.startError);
  rotateLog(paths.controllerLog);
  const logStart = sizeOf(paths.controllerLog);
  let failure: string | undefined;
  let hasLeft = false;
  let isManaged = false;
  const start = async (): Promise<void> => {
    hasLeft = false;
    isManaged = (await deps.startByManager?.()) ?? false;
    if (!isManaged) await startOwn();
  };
  const startOwn = async (): Promise<void> => {
    const child = startDaemon(paths, await programOf(paths, deps.entry));
    child.once('error', (error) => (failure = `it could not be run: ${messageOf(error)}`));
    child.once('exit', (code, signal) => {
      if (code === 0) hasLeft = true;
      else failure = `it ended with ${code === null ? String(signal) : `exit code ${code}`}`;
    });
  };
  await start();
  const startedAt = deps.clock.monotonic();
  for (;;) {
    const hadLeft = hasLeft;
    const health = await deps.probe();
    if (health !== undefined) return health;
    // Our controller exited in favour of another one, which has ended too, for example because it was killed.
    if (hadLeft) await start();
    const passedMs = deps.clock.monotonic() - startedAt;
    // If the manager's controller comes after all, one of the two ends at the other's lock.
    if (isManaged && passedMs >= managedMs && changeOf(paths.startError) === earlier) {
      isManaged = false;
      deps.say?.('The installed unit starts no controller that answers, so this command starts one. See: svc controller status');
      await startOwn();
    }
    // The end of a process that the service manager started shows only in what it recorded.
    if (isManaged && changeOf(paths.startError) !== earlier) failure ??= 'it ended with an error';
    if (passedMs >= startTimeoutMs) failure ??= `it did not answer within ${startTimeoutMs / 1_000} s`;
    const own = failure !== undefined || passedMs >= standByMs ? ownError(paths) : undefined;
    // A standby may have recorded this error long ago. Other errors count only when this start recorded them.
    if (own?.code === 'SVC_NOT_LEADER') throw own;
    if (failure !== undefined) throw (changeOf(paths.startError) === earlier ? undefined : own) ?? startError(paths, failure, logStart);
    await deps.clock.sleep(pollMs, deps.signal);
    deps.signal.throwIfAborted();
  }
}

/** What a process runs as the controller. */
interface Program {
  readonly entry: string;
  /** Where its processes find their programs. Undefined: beside its own. */
  readonly root: string | undefined;
}

async function programOf(paths: HomePaths, given?: string): Promise<Program> {
  if (given !== undefined) return { entry: given, root: undefined };
  const { prepareProgram } = await import('../../launcher/program-bundle.ts');
  const root = await prepareProgram(paths);
  return { entry: entryBelow(root, 'controller/main'), root };
}

/** The name of this command is wrong for clients that call the controller later. */
function daemonEnv(paths: HomePaths, { root }: Program): Record<string, string | undefined> {
  return { ...wholeEnv(), SVC_HOME: paths.home, SVC_INVOKED_AS: undefined, SVC_PROGRAM_ROOT: root };
}

/**
 * Turns this process into the controller, which logs to standard output, as a service manager wants it. Never returns.
 * Throws SVC_HOME_UNUSABLE.
 */
export async function becomeController(paths: HomePaths): Promise<never> {
  prepareHome(paths);
  const program = await programOf(paths);
  process.chdir(paths.home);
  const given = Object.entries(daemonEnv(paths, program)).filter((pair): pair is [string, string] => pair[1] !== undefined);
  process.execve?.(process.execPath, [process.execPath, program.entry], Object.fromEntries(given));
  throw new Error('this version of Node.js cannot replace a process');
}

/** Starts the controller in its own session, so that neither Ctrl-C nor closing the terminal ends it. */
function startDaemon(paths: HomePaths, program: Program): ChildProcess {
  let log: number;
  try {
    log = openLog(paths.controllerLog);
  } catch (error) {
    if (hasErrno(error, 'ENOSPC')) throw new SvcError('SVC_NO_SPACE', `${paths.controllerLog} cannot be written: no space is left.`);
    throw new SvcError('SVC_HOME_UNUSABLE', `${paths.controllerLog} cannot be written: ${messageOf(error)}.`, { cause: error });
  }
  try {
    const child = spawn(process.execPath, [program.entry], {
      cwd: paths.home,
      detached: true,
      stdio: ['ignore', log, log],
      env: daemonEnv(paths, program),
    });
    child.unref();
    return child;
  } finally {
    closeSync(log);
  }
}

function startError(paths: HomePaths, failure: string, logStart: number): SvcError {
  if (isDiskFull(paths)) {
    return new SvcError(
      'SVC_NO_SPACE',
      `The controller could not be started: the disk of ${paths.home} is full. Services that run go on.`,
      {
        hint: `Free space or inodes there (df -h ${quoteWord(paths.home)}; df -i ${quoteWord(paths.home)}), then run the command again.`,
      },
    );
  }
  const lines = readFileSync(paths.controllerLog).subarray(logStart).toString('utf8').trimEnd().split('\n');
  const said = lines.filter((line) => line !== '' && !isStackLine(line)).slice(-shownLogLines);
  const end = said.map((line) => `\n${line}`).join('');
  return new SvcError('SVC_CONTROLLER_START', `The controller could not be started: ${failure}. Its log is ${paths.controllerLog}${end}`);
}

/** The error that the controller recorded: why it ended, or why it does not answer. */
function ownError(paths: HomePaths): SvcError | undefined {
  try {
    const reply: unknown = JSON.parse(readFileSync(paths.startError, 'utf8'));
    return isErrorReply(reply) ? toSvcError(reply) : undefined;
  } catch {
    // The controller ended before it could record an error.
    return undefined;
  }
}

/** A value that changes whenever the file is written. */
function changeOf(path: string): string | undefined {
  const stats = statSync(path, { throwIfNoEntry: false, bigint: true });
  return stats && `${stats.ino} ${stats.mtimeNs}`;
}

function isStackLine(line: string): boolean {
  return /^\s+at /.test(line);
}

function sizeOf(path: string): number {
  return statSync(path, { throwIfNoEntry: false })?.size ?? 0;
}
