import { spawn, type ChildProcess } from 'node:child_process';
import { closeSync, openSync, readFileSync, statSync } from 'node:fs';
import { isErrorReply, toSvcError } from '../api/client-errors.ts';
import type { Clock } from '../shared/clock.ts';
import { wholeEnv } from '../shared/env.ts';
import { hasErrno, messageOf, SvcError } from '../shared/errors.ts';
import type { HomePaths } from '../shared/paths.ts';
import { prepareHome } from '../shared/prepare-home.ts';
import { programEntry } from '../shared/program-files.ts';

/** How long a controller may take until it answers, ms: it may wait 20 s for one that is leaving, and brings up the processes of services first. */
const startTimeoutMs = 60_000;
/** How long one that says that another controller leads is waited for, ms: one that died leads for 10 s more. */
const standByMs = 15_000;
const pollMs = 25;

/** Lines of its log that are shown when it does not start. */
const shownLogLines = 20;

/** What starting the controller needs. */
export interface DaemonDeps<Health> {
  readonly clock: Clock;
  readonly signal: AbortSignal;
  /** Undefined while nobody listens on the controller's socket. */
  readonly probe: () => Promise<Health | undefined>;
  /** The program to run; the controller's by default. */
  readonly entry?: string;
}

/**
 * What the controller of this home says of itself, after starting it when none runs. Any number of processes may do this at once: of the
 * controllers they start one stays, the others end with exit code 0; should that one end before it has answered, another one is started. Throws
 * what the controller left behind as the error that ended it, and SVC_CONTROLLER_START, with the end of its log, when it could not say.
 */
export async function ensureController<Health>(paths: HomePaths, deps: DaemonDeps<Health>): Promise<Health> {
  const running = await deps.probe();
  if (running !== undefined) return running;
  prepareHome(paths);
  const earlier = changeOf(paths.startError);
  const logStart = sizeOf(paths.controllerLog);
  let failure: string | undefined;
  let hasLeft = false;
  const start = (): void => {
    hasLeft = false;
    const child = startDaemon(paths, deps.entry ?? programEntry('controller/main'));
    child.once('error', (error) => (failure = `it could not be run: ${messageOf(error)}`));
    child.once('exit', (code, signal) => {
      if (code === 0) hasLeft = true;
      else failure = `it ended with ${code === null ? String(signal) : `exit code ${code}`}`;
    });
  };
  start();
  const startedAt = deps.clock.monotonic();
  for (;;) {
    const hadLeft = hasLeft;
    const health = await deps.probe();
    if (health !== undefined) return health;
    // The one that it left the place to is gone, too: it was killed, say.
    if (hadLeft) start();
    const passedMs = deps.clock.monotonic() - startedAt;
    if (passedMs >= startTimeoutMs) failure ??= `it did not answer within ${startTimeoutMs / 1_000} s`;
    const own = failure !== undefined || passedMs >= standByMs ? ownError(paths) : undefined;
    // One that stands by may have said so long ago; what ended an earlier one is of no interest.
    if (own?.code === 'SVC_NOT_LEADER') throw own;
    if (failure !== undefined) throw (changeOf(paths.startError) === earlier ? undefined : own) ?? startError(paths, failure, logStart);
    await deps.clock.sleep(pollMs, deps.signal);
    deps.signal.throwIfAborted();
  }
}

/** Starts the controller in a session of its own, so that neither Ctrl-C nor the end of the terminal reaches it. */
function startDaemon(paths: HomePaths, entry: string): ChildProcess {
  let log: number;
  try {
    log = openSync(paths.controllerLog, 'a', 0o600);
  } catch (error) {
    if (hasErrno(error, 'ENOSPC')) throw new SvcError('SVC_NO_SPACE', `${paths.controllerLog} cannot be written: no space is left.`);
    throw new SvcError('SVC_HOME_UNUSABLE', `${paths.controllerLog} cannot be written: ${messageOf(error)}.`, { cause: error });
  }
  try {
    const child = spawn(process.execPath, [entry], {
      cwd: paths.home,
      detached: true,
      stdio: ['ignore', log, log],
      // How this command was called says nothing about those that talk to the controller later.
      env: { ...wholeEnv(), SVC_HOME: paths.home, SVC_INVOKED_AS: undefined },
    });
    child.unref();
    return child;
  } finally {
    closeSync(log);
  }
}

function startError(paths: HomePaths, failure: string, logStart: number): SvcError {
  const lines = readFileSync(paths.controllerLog).subarray(logStart).toString('utf8').trimEnd().split('\n');
  const said = lines.filter((line) => line !== '' && !isStackLine(line)).slice(-shownLogLines);
  const end = said.map((line) => `\n${line}`).join('');
  return new SvcError('SVC_CONTROLLER_START', `The controller could not be started: ${failure}. Its log is ${paths.controllerLog}${end}`);
}

/** What the controller itself says ended it, or keeps it from answering. */
function ownError(paths: HomePaths): SvcError | undefined {
  try {
    const reply: unknown = JSON.parse(readFileSync(paths.startError, 'utf8'));
    return isErrorReply(reply) ? toSvcError(reply) : undefined;
  } catch {
    // It did not get so far as to say it.
    return undefined;
  }
}

/** Changes whenever the file is written. */
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
