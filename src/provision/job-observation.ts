import { ok } from 'node:assert/strict';
import { buffer } from 'node:stream/consumers';
import { jobDir, parseJobRecord } from '../remote/job-record.ts';
import type { Remote } from '../remote/remote.ts';
import { systemClock } from '../shared/clock.ts';
import { DialError, dialReplica } from '../shared/system/dial.ts';
import { messageOf } from '../shared/errors.ts';
import { jobLogPath, jobStatus, watchJob, type JobStatus } from './job.ts';

/** The only job in each case of the conformance suite. */
export const job = 'main';

/** Loaded machines show a change late; other machines never reach this limit. */
const patienceMs = 90_000;

/** Polls until the condition holds. */
export async function until(isSo: () => boolean | Promise<boolean>, what: string): Promise<void> {
  const deadline = systemClock.monotonic() + patienceMs;
  while (!(await isSo())) {
    if (systemClock.monotonic() > deadline) throw new Error(`waited in vain for ${what}`);
    await systemClock.sleep(20);
  }
}

/** Waits for the job's end and returns its status. */
export async function untilEnded(remote: Remote): Promise<JobStatus> {
  let last: JobStatus | undefined;
  const stop = new AbortController();
  const giveUp = systemClock.after(patienceMs, () => stop.abort());
  for await (const status of watchJob(remote, job, stop.signal)) last = status;
  giveUp();
  if (last === undefined || stop.signal.aborted) throw new Error(`the job did not end: ${JSON.stringify(last)}`);
  return last;
}

/** Waits until a file in the working directory has content. */
export async function untilFile(remote: Remote, name: string): Promise<void> {
  try {
    await until(async () => ((await remote.readFile(`${remote.baseDir}/workdir/${name}`)) ?? '') !== '', name);
  } catch (error) {
    const instead = { status: await jobStatus(remote, job), log: await remote.readFile(jobLogPath(remote, job)) };
    throw new Error(`${messageOf(error)}; instead: ${JSON.stringify(instead)}`, { cause: error });
  }
}

/** Pids, in the namespace of the machine's owner, of processes with `mark` among their arguments. */
export async function processesNaming(remote: Remote, mark: string): Promise<readonly number[]> {
  // On grep's input: as an argument the mark would match grep itself.
  const script = 'grep -lzFx -f - /proc/[0-9]*/cmdline 2>/dev/null';
  const { stdout } = await remote.exec(['sh', '-c', script], { input: mark });
  return [...stdout.matchAll(/\d+/g)].map(([pid]) => Number(pid));
}

/** Waits until `count` processes have `mark` among their arguments; returns their pids. */
export async function untilCount(remote: Remote, mark: string, count: number): Promise<readonly number[]> {
  let pids: readonly number[] = [];
  await until(async () => (pids = await processesNaming(remote, mark)).length === count, `${count} processes; there are ${pids.length}`);
  return pids;
}

/** Waits for the process and for `run` in the record, which may be written shortly after the start. */
export async function untilRunning(remote: Remote, mark: string): Promise<void> {
  await untilCount(remote, mark, 1);
  await until(async () => (await jobStatus(remote, job)).phase === 'run', 'the record to say that it runs');
}

/** By the shell: `kill` is a program only where procps is installed. */
export async function killOn(remote: Remote, pid: number | undefined): Promise<void> {
  await remote.exec(['sh', '-c', 'kill -9 "$1"', 'sh', String(pid)]);
}

/** Kills a process that the job's record names. */
export async function killRecorded(remote: Remote, which: 'runner' | 'program'): Promise<void> {
  const record = parseJobRecord((await remote.readFile(`${jobDir(remote.baseDir, job)}/status`)) ?? '');
  const pid = record?.[which]?.pid ?? 0;
  ok(pid > 0);
  await killOn(remote, pid);
  await until(async () => !/^\d+ \(.*\) [^ZX] /.test((await remote.readFile(`/proc/${pid}/stat`)) ?? ''), `process ${pid} to end`);
}

/** 9 background processes, 9 in sessions of their own, 9 daemons without parents; all ignore what can be ignored. */
export const treeSize = 27;

/** Shell that starts the tree. Each process has `mark` among its arguments. */
export function stubbornTree(mark: string): string {
  return `for i in 1 2 3 4 5 6 7 8 9; do
  (trap '' TERM HUP INT QUIT; exec sleep ${mark}) &
  setsid sh -c "trap '' TERM HUP INT QUIT; exec sleep ${mark}" &
  (setsid sh -c "trap '' TERM HUP INT QUIT; cd /; sleep ${mark} &" &)
done`;
}

const dialTimeoutMs = 5_000;

/** Connects to port 8080 until a program answers. */
export async function answerOf(remote: Remote): Promise<string> {
  let answer = '';
  await until(async () => {
    try {
      const socket = await dialReplica(await remote.address(8080), { timeoutMs: dialTimeoutMs });
      answer = (await buffer(socket)).toString();
      // Behind a forward, a closed port accepts the connection and sends nothing.
      return answer !== '';
    } catch (error) {
      if (error instanceof DialError) return false;
      throw error;
    }
  }, 'an answer');
  return answer;
}

/** Undefined when port 8080 accepts. Behind a forward, a closed port shows as a connection that ends without a byte. */
export async function dialErrorOf(remote: Remote): Promise<string | undefined> {
  const address = await remote.address(8080);
  try {
    const socket = await dialReplica(address, { timeoutMs: dialTimeoutMs });
    if (address.kind === 'forward') return (await buffer(socket)).length === 0 ? 'ECONNREFUSED' : undefined;
    socket.destroy();
    return undefined;
  } catch (error) {
    if (error instanceof DialError) return error.code;
    throw error;
  }
}
