import { readFileSync } from 'node:fs';
import { jobDir, parseJobRecord, type JobRecord, type RecordedProcess } from '../remote/job-record.ts';
import type { Remote } from '../remote/remote.ts';
import { shellCommand, shellQuote } from '../remote/shell-quote.ts';
import { delayMs, type Backoff } from '../shared/backoff.ts';
import { systemClock, type Clock } from '../shared/clock.ts';
import { linkedController } from '../shared/deadline.ts';
import { SvcError } from '../shared/errors.ts';
import { wakeable } from '../shared/loop.ts';
import { parseStartTicks } from '../shared/system/process-identity.ts';
import { programFile } from '../shared/program-files.ts';

/** The commands of a job and their environment. */
export interface JobSpec {
  /** Commands that prepare the machine. They run once, before `run`, without network isolation. */
  readonly setup?: string;
  readonly run?: string;
  /** Environment of setup and run; the machine's has precedence. Secret values are only in a file of mode 0600. */
  readonly env: Readonly<Record<string, string>>;
  /** Absolute path on the machine; created when missing. */
  readonly workdir: string;
  /** Whether `run` enters the machine's network isolation, where all ports are free. Default: true. */
  readonly isolated?: boolean;
  /** Whether `run` waits for `letRun`, so that jobs of several nodes start together. Default: false. */
  readonly waits?: boolean;
}

/** Status of a job. Times are ms since the epoch by the machine's clock. */
export interface JobStatus {
  /** `waiting`: for `letRun`. `lost`: the processes are gone and left no record of their end. */
  readonly phase: 'absent' | 'setup' | 'waiting' | 'run' | 'ended' | 'lost';
  readonly exitCode: number | undefined;
  /** The signal that ended the job, such as `SIGKILL`. */
  readonly signal: string | undefined;
  /** The phase that ended with an exit code other than 0. */
  readonly failedPhase: 'setup' | 'run' | undefined;
  /** Start of `run`. */
  readonly startedAt: number | undefined;
  readonly endedAt: number | undefined;
}

/** How to stop a job. */
export interface StopOptions {
  /** Time from SIGTERM to SIGKILL, ms. */
  readonly graceMs: number;
  readonly signal?: AbortSignal;
}

/** How to watch a job. */
export interface WatchOptions {
  readonly clock?: Clock;
  /**
   * Poll interval without a change notification, ms; by default 1 s on this machine and 20 s on others. Only polls notice
   * processes that ended without a record.
   */
  readonly pollMs?: number;
}

const namePattern = /^[A-Za-z0-9][A-Za-z0-9._-]*$/;
const variablePattern = /^[A-Za-z_][A-Za-z0-9_]*$/;

/** Variables that bash sets itself and makes read-only. */
const shellOwned = new Set(['BASHOPTS', 'BASH_VERSINFO', 'EUID', 'PPID', 'SHELLOPTS', 'UID']);

/** Python output must reach the log at once, not when a buffer is full. */
const defaultEnv = { PYTHONUNBUFFERED: '1' };

/** Limit for a job's start, ms: it only covers writing the record. */
const startTimeoutMs = 30_000;

/** Limit for stopping beyond the grace period, ms: the kernel needs time to end processes. */
const killTimeoutMs = 30_000;

let runnerText: string | undefined;

/** The runner's script. It belongs to the code of this process, so it is read once. */
const runnerScript = (): string => (runnerText ??= readFileSync(programFile('src/node/runner.sh'), 'utf8'));

/**
 * Starts a job on a machine, detached: it outlives this process. Settles when the job has a record. May be repeated
 * after a crash, and from several processes at once: it does not touch a job that was started before.
 */
export async function startJob(remote: Remote, name: string, spec: JobSpec): Promise<void> {
  const dir = dirOf(remote, name);
  if ((await remote.readFile(`${dir}/status`)) !== undefined) return;
  const files: readonly (readonly [file: string, content: string])[] = [
    ['runner.sh', runnerScript()],
    ['settings', settingsFile(remote.limit ?? [], spec.isolated === false ? [] : remote.enter, spec.workdir, spec.waits === true)],
    ['env', environmentFile({ ...defaultEnv, ...spec.env, ...remote.environment })],
    ...(spec.setup === undefined ? [] : [['setup.sh', spec.setup] as const]),
    ...(spec.run === undefined ? [] : [['run.sh', spec.run] as const]),
  ];
  await Promise.all(files.map(([file, content]) => remote.writeFile(`${dir}/${file}`, content)));
  const started = await remote.exec(['sh', `${dir}/runner.sh`, 'start', dir], { detached: true, cwd: remote.baseDir });
  if (started.exitCode !== 0) throw new SvcError('SVC_INTERNAL', `The job '${name}' could not be started: ${started.stderr.trim()}`);
  await untilRecorded(remote, name, dir);
}

/** Starts `run` of a job that waits; succeeds when it already runs. */
export async function letRun(remote: Remote, name: string): Promise<void> {
  await remote.writeFile(`${dirOf(remote, name)}/go`, '');
}

const statusPoll: Backoff = { firstMs: 2, longestMs: 200 };

/** Without a record, a job reported as started would not be found again after a crash. */
async function untilRecorded(remote: Remote, name: string, dir: string): Promise<void> {
  const deadline = systemClock.monotonic() + startTimeoutMs;
  for (let polls = 1; (await remote.readFile(`${dir}/status`)) === undefined; polls += 1) {
    if (systemClock.monotonic() > deadline)
      throw new SvcError('SVC_INTERNAL', `The job '${name}' did not start within ${startTimeoutMs / 1_000} s.`);
    await systemClock.sleep(delayMs(statusPoll, polls));
  }
}

/** Reads the present status of a job. */
export async function jobStatus(remote: Remote, name: string): Promise<JobStatus> {
  const record = await readRecord(remote, name);
  if (record === undefined) return { ...unknown, phase: 'absent' };
  if (record.phase === 'ended' || (await hasProcesses(remote, record))) return statusOf(record, record.phase);
  // The job may have recorded its end between the read of the record and the process check.
  const latest = (await readRecord(remote, name)) ?? record;
  return statusOf(latest, latest.phase === 'ended' ? 'ended' : 'lost');
}

/**
 * A poll reads files of this machine. On another machine it takes several sessions; with ssh, each starts processes on both
 * machines. If the machine or the connection is lost, the provider or the watch reports it first.
 */
const pollMsOf = (remote: Remote): number => (remote.localPath(remote.baseDir) === undefined ? 20_000 : 1_000);

/** Yields the present status and each change. Ends after `ended` or `lost`, or when the signal aborts. */
export async function* watchJob(remote: Remote, name: string, signal: AbortSignal, options: WatchOptions = {}): AsyncGenerator<JobStatus> {
  const { clock = systemClock, pollMs = pollMsOf(remote) } = options;
  const changes = wakeable(clock, signal);
  const { controller: over, unlink } = linkedController(signal);
  remote.watch(statusPath(remote, name), changes.wake, over.signal);
  let last: JobStatus['phase'] | undefined;
  try {
    while (!signal.aborted) {
      const status = await jobStatus(remote, name);
      if (signal.aborted) return;
      if (status.phase !== last) {
        last = status.phase;
        yield status;
      }
      if (status.phase === 'ended' || status.phase === 'lost') return;
      await changes.pause(pollMs);
    }
  } finally {
    unlink();
    over.abort();
  }
}

/**
 * Sends SIGTERM to the processes of the job's program, and SIGKILL to all that is left after the grace period. Settles
 * when no process is left; returns whether the program had to be killed. Succeeds for a job that has ended or never
 * began.
 */
export async function stopJob(remote: Remote, name: string, { graceMs, signal }: StopOptions): Promise<boolean> {
  const dir = dirOf(remote, name);
  const before = await readRecord(remote, name);
  if (before === undefined) return false;
  const timeoutMs = graceMs + killTimeoutMs;
  const argv = ['sh', `${dir}/runner.sh`, 'stop', dir, String(Math.max(0, Math.round(graceMs)))];
  const result = await remote.exec(argv, { timeoutMs, ...(signal === undefined ? {} : { signal }) });
  if (result.exitCode !== 0)
    throw new SvcError('SVC_MACHINE_LOST', `The job '${name}' could not be stopped: ${result.stderr.trim() || 'no answer'}`);
  // The record of a program that ended by itself stays as it was.
  return before.phase !== 'ended' && (await readRecord(remote, name))?.signal === 'SIGKILL';
}

/** The log of setup and run. It exists as soon as the job has a record. */
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

function statusPath(remote: Remote, name: string): string {
  return `${dirOf(remote, name)}/status`;
}

async function readOften(remote: Remote, path: string): Promise<string | undefined> {
  return (await remote.readText?.(path)) ?? remote.readFile(path);
}

async function readRecord(remote: Remote, name: string): Promise<JobRecord | undefined> {
  const text = await readOften(remote, statusPath(remote, name));
  return text === undefined ? undefined : parseJobRecord(text);
}

/**
 * Whether the job can make progress. Setup needs the runner. A running program continues without it, but then no
 * process records its end.
 */
async function hasProcesses(remote: Remote, record: JobRecord): Promise<boolean> {
  const lives = async (process: RecordedProcess | undefined): Promise<boolean> => {
    if (process === undefined) return false;
    const stat = await readOften(remote, `/proc/${process.pid}/stat`);
    return stat !== undefined && parseStartTicks(stat) === process.startTicks;
  };
  const [boot, runner, program] = await Promise.all([
    readOften(remote, '/proc/sys/kernel/random/boot_id'),
    lives(record.runner),
    record.phase === 'run' ? lives(record.program) : false,
  ]);
  return boot?.trim() === record.bootId && (runner || program);
}

/** The shell tests for an empty string. */
const yesOrNothing = (isSo: boolean): string => (isSo ? 'yes' : '');

function settingsFile(limit: readonly string[], enter: readonly string[], workdir: string, waits: boolean): string {
  return [
    `svc_workdir=${shellQuote(workdir)}`,
    `svc_waits=${yesOrNothing(waits)}`,
    `svc_isolated=${yesOrNothing(enter.length > 0)}`,
    `svc_begin() { exec setsid ${shellCommand(limit)} "$@"; }`,
    `svc_enter() { exec setsid ${shellCommand([...limit, ...enter])} "$@"; }`,
    '',
  ].join('\n');
}

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
