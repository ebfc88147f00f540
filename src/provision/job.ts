import { readFile } from 'node:fs/promises';
import { jobDir, parseJobRecord, type JobRecord, type RecordedProcess } from '../remote/job-record.ts';
import type { Remote } from '../remote/remote.ts';
import { shellCommand, shellQuote } from '../remote/shell-quote.ts';
import { systemClock, type Clock } from '../shared/clock.ts';
import { SvcError } from '../shared/errors.ts';
import { parseStartTicks } from '../shared/process-identity.ts';
import { programFile } from '../shared/program-files.ts';

/** What a job is to do. */
export interface JobSpec {
  /** Shell commands that prepare the machine; run once, before `run`, with the whole network. */
  readonly setup?: string;
  /** Shell commands that are the program. */
  readonly run?: string;
  /** Everything both see besides the machine's own environment, which wins. Values may be secret: they only ever are in a file of mode 0600. */
  readonly env: Readonly<Record<string, string>>;
  /** Absolute on the machine; made when missing. */
  readonly workdir: string;
  /** Whether `run` enters the machine's isolation, so that it has all ports to itself; else it shares the machine's network. Default: true. */
  readonly isolated?: boolean;
  /** Whether `run` waits until `letRun` is called, as jobs of several nodes begin it together. Default: false. */
  readonly waits?: boolean;
}

/** How a job is doing. Times are ms since the epoch by the machine's clock. */
export interface JobStatus {
  /** `waiting`: prepared, until `letRun` is called; `lost`: its processes are gone and nobody wrote how it ended. */
  readonly phase: 'absent' | 'setup' | 'waiting' | 'run' | 'ended' | 'lost';
  readonly exitCode: number | undefined;
  /** Such as `SIGKILL`, when a signal ended it. */
  readonly signal: string | undefined;
  /** Of a job that ended with anything but 0. */
  readonly failedPhase: 'setup' | 'run' | undefined;
  /** When `run` was started. */
  readonly startedAt: number | undefined;
  readonly endedAt: number | undefined;
}

/** How to stop a job. */
export interface StopOptions {
  /** From SIGTERM to SIGKILL, ms. */
  readonly graceMs: number;
  readonly signal?: AbortSignal;
}

/** How to watch a job. */
export interface WatchOptions {
  readonly clock?: Clock;
  /** How often it is looked at without being told of a change, ms: only this notices processes that are gone without a record. */
  readonly pollMs?: number;
}

const namePattern = /^[A-Za-z0-9][A-Za-z0-9._-]*$/;
const variablePattern = /^[A-Za-z_][A-Za-z0-9_]*$/;

/** Variables that bash sets itself and lets nobody set. */
const shellOwned = new Set(['BASHOPTS', 'BASH_VERSINFO', 'EUID', 'PPID', 'SHELLOPTS', 'UID']);

/** Output of Python programs is in the log at once rather than when a buffer is full. */
const defaultEnv = { PYTHONUNBUFFERED: '1' };

/** How long starting may take: writing a record, not the job itself. */
const startTimeoutMs = 30_000;

/** Beyond its grace, stopping takes as long as the kernel needs to end processes. */
const killTimeoutMs = 30_000;

/**
 * Starts a job on a machine, detached: it outlives this process. A job that was started before, by whomever, is left alone, so that this can be
 * repeated after a crash and from several processes at once. Settles when the job has a record.
 */
export async function startJob(remote: Remote, name: string, spec: JobSpec): Promise<void> {
  const dir = dirOf(remote, name);
  if ((await remote.readFile(`${dir}/status`)) !== undefined) return;
  const files: readonly (readonly [file: string, content: string])[] = [
    ['runner.sh', await readFile(programFile('src/node/runner.sh'), 'utf8')],
    ['settings', settingsFile(spec.isolated === false ? [] : remote.enter, spec.workdir, spec.waits === true)],
    ['env', environmentFile({ ...defaultEnv, ...spec.env, ...remote.environment })],
    ...(spec.setup === undefined ? [] : [['setup.sh', spec.setup] as const]),
    ...(spec.run === undefined ? [] : [['run.sh', spec.run] as const]),
  ];
  await Promise.all(files.map(([file, content]) => remote.writeFile(`${dir}/${file}`, content)));
  const started = await remote.exec(['sh', `${dir}/runner.sh`, 'start', dir], { detached: true, cwd: remote.baseDir });
  if (started.exitCode !== 0) throw new SvcError('SVC_INTERNAL', `The job '${name}' could not be started: ${started.stderr.trim()}`);
  await untilRecorded(remote, name, dir);
}

/** Lets a prepared job that waits run; success when it runs already. */
export async function letRun(remote: Remote, name: string): Promise<void> {
  await remote.writeFile(`${dirOf(remote, name)}/go`, '');
}

/** Nobody may be told that a job runs before it would be found again after a crash. */
async function untilRecorded(remote: Remote, name: string, dir: string): Promise<void> {
  const deadline = systemClock.monotonic() + startTimeoutMs;
  for (let pauseMs = 2; (await remote.readFile(`${dir}/status`)) === undefined; pauseMs = Math.min(200, pauseMs * 2)) {
    if (systemClock.monotonic() > deadline)
      throw new SvcError('SVC_INTERNAL', `The job '${name}' did not start within ${startTimeoutMs / 1_000} s.`);
    await systemClock.sleep(pauseMs);
  }
}

/** How a job is doing now. */
export async function jobStatus(remote: Remote, name: string): Promise<JobStatus> {
  const record = await readRecord(remote, name);
  if (record === undefined) return { ...unknown, phase: 'absent' };
  if (record.phase === 'ended' || (await hasProcesses(remote, record))) return statusOf(record, record.phase);
  // It may have written how it ended between the two looks.
  const latest = (await readRecord(remote, name)) ?? record;
  return statusOf(latest, latest.phase === 'ended' ? 'ended' : 'lost');
}

/** Each status that differs from the one before, beginning with the present one; ends after `ended` or `lost`, or when the signal aborts. */
export async function* watchJob(remote: Remote, name: string, signal: AbortSignal, options: WatchOptions = {}): AsyncGenerator<JobStatus> {
  const { clock = systemClock, pollMs = 1_000 } = options;
  let nap = new AbortController();
  let isChanged = false;
  const wake = (): void => {
    isChanged = true;
    nap.abort();
  };
  const over = new AbortController();
  remote.watch(dirOf(remote, name), wake, AbortSignal.any([signal, over.signal]));
  let last: JobStatus['phase'] | undefined;
  try {
    while (!signal.aborted) {
      isChanged = false;
      nap = new AbortController();
      const status = await jobStatus(remote, name);
      if (signal.aborted) return;
      if (status.phase !== last) {
        last = status.phase;
        yield status;
      }
      if (status.phase === 'ended' || status.phase === 'lost') return;
      if (!isChanged) await clock.sleep(pollMs, AbortSignal.any([signal, nap.signal]));
    }
  } finally {
    over.abort();
  }
}

/**
 * Ends a job and everything it started: SIGTERM to all of its program, SIGKILL to what is left after the grace. Settles when nothing is left.
 * A job that has ended, or never began, is success.
 */
export async function stopJob(remote: Remote, name: string, { graceMs, signal }: StopOptions): Promise<void> {
  const dir = dirOf(remote, name);
  if ((await remote.readFile(`${dir}/status`)) === undefined) return;
  const timeoutMs = graceMs + killTimeoutMs;
  const argv = ['sh', `${dir}/runner.sh`, 'stop', dir, String(Math.max(0, Math.round(graceMs)))];
  const result = await remote.exec(argv, { timeoutMs, ...(signal === undefined ? {} : { signal }) });
  if (result.exitCode !== 0)
    throw new SvcError('SVC_MACHINE_LOST', `The job '${name}' could not be stopped: ${result.stderr.trim() || 'no answer'}`);
}

/** The file with the output of setup and run, in order. It exists from the moment the job has a record. */
export function jobLogPath(remote: Remote, name: string): string {
  return `${dirOf(remote, name)}/job.log`;
}

function dirOf(remote: Remote, name: string): string {
  if (!namePattern.test(name)) throw new SvcError('SVC_BAD_NAME', `A job cannot be called '${name}'.`);
  return jobDir(remote.baseDir, name);
}

const unknown = { exitCode: undefined, signal: undefined, failedPhase: undefined, startedAt: undefined, endedAt: undefined } as const;

function statusOf(record: JobRecord, phase: JobStatus['phase']): JobStatus {
  const { exitCode, signal, failedPhase, startedAt, endedAt } = record;
  return { phase, exitCode, signal, failedPhase, startedAt, endedAt };
}

async function readRecord(remote: Remote, name: string): Promise<JobRecord | undefined> {
  const text = await remote.readFile(`${dirOf(remote, name)}/status`);
  return text === undefined ? undefined : parseJobRecord(text);
}

/** While setup runs, only the runner can bring the job further. A running program goes on without it: then nobody will write how it ends. */
async function hasProcesses(remote: Remote, record: JobRecord): Promise<boolean> {
  const lives = async (process: RecordedProcess | undefined): Promise<boolean> => {
    if (process === undefined) return false;
    const stat = await remote.readFile(`/proc/${process.pid}/stat`);
    return stat !== undefined && parseStartTicks(stat) === process.startTicks;
  };
  const [boot, runner, program] = await Promise.all([
    remote.readFile('/proc/sys/kernel/random/boot_id'),
    lives(record.runner),
    record.phase === 'run' ? lives(record.program) : false,
  ]);
  return boot?.trim() === record.bootId && (runner || program);
}

/** As the shell asks: whether there is anything. */
const yesOrNothing = (isSo: boolean): string => (isSo ? 'yes' : '');

/** What the runner has to know, as shell. */
function settingsFile(enter: readonly string[], workdir: string, waits: boolean): string {
  return [
    `svc_workdir=${shellQuote(workdir)}`,
    `svc_waits=${yesOrNothing(waits)}`,
    `svc_isolated=${yesOrNothing(enter.length > 0)}`,
    `svc_enter() { exec setsid ${shellCommand(enter)} "$@"; }`,
    '',
  ].join('\n');
}

/** The environment as shell that exports it. */
function environmentFile(env: Readonly<Record<string, string>>): string {
  return Object.entries(env)
    .filter(([name]) => !shellOwned.has(name))
    .map(([name, value]) => {
      if (!variablePattern.test(name)) throw new SvcError('SVC_INVALID_TASK', `A variable cannot be called '${name}'.`);
      if (value.includes('\0')) throw new SvcError('SVC_INVALID_TASK', `The value of the variable ${name} holds a NUL character.`);
      return `export ${name}=${shellQuote(value)}\n`;
    })
    .join('');
}
