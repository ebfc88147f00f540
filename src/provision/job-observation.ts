import { match } from 'node:assert/strict';
import { buffer } from 'node:stream/consumers';
import { jobDir, parseJobRecord } from '../remote/job-record.ts';
import type { Remote } from '../remote/remote.ts';
import { systemClock } from '../shared/clock.ts';
import { DialError, dialReplica } from '../shared/dial.ts';
import { jobStatus, watchJob, type JobStatus } from './job.ts';

/** The name of the one job of each case of the conformance suite. */
export const job = 'main';

/** Changes on a loaded machine take a while; on others this is never waited out. */
const patienceMs = 20_000;

/** Asks until it is so. */
export async function until(isSo: () => boolean | Promise<boolean>, what: string): Promise<void> {
  const deadline = systemClock.monotonic() + patienceMs;
  while (!(await isSo())) {
    if (systemClock.monotonic() > deadline) throw new Error(`waited in vain for ${what}`);
    await systemClock.sleep(20);
  }
}

/** How the job ended. */
export async function untilEnded(remote: Remote): Promise<JobStatus> {
  let last: JobStatus | undefined;
  const stop = new AbortController();
  const giveUp = systemClock.after(patienceMs, () => stop.abort());
  for await (const status of watchJob(remote, job, stop.signal)) last = status;
  giveUp();
  if (last === undefined || stop.signal.aborted) throw new Error(`the job did not end: ${JSON.stringify(last)}`);
  return last;
}

/** Settles when a file of the working folder has content. */
export async function untilFile(remote: Remote, name: string): Promise<void> {
  await until(async () => ((await remote.readFile(`${remote.baseDir}/workdir/${name}`)) ?? '') !== '', name);
}

/** Pids of the processes, as the machine's owner sees them, that have `mark` as an argument. */
export async function processesNaming(remote: Remote, mark: string): Promise<readonly number[]> {
  // The mark is among the input of what looks for it, not among its arguments.
  const script = 'grep -lzFx -f - /proc/[0-9]*/cmdline 2>/dev/null';
  const { stdout } = await remote.exec(['sh', '-c', script], { input: mark });
  return [...stdout.matchAll(/\d+/g)].map(([pid]) => Number(pid));
}

/** Pids of the processes naming `mark`, once there are so many. */
export async function untilCount(remote: Remote, mark: string, count: number): Promise<readonly number[]> {
  let pids: readonly number[] = [];
  await until(async () => (pids = await processesNaming(remote, mark)).length === count, `${count} processes; there are ${pids.length}`);
  return pids;
}

/** Settles when the one process naming `mark` runs and the record says so: a program may begin a moment before that is written. */
export async function untilRunning(remote: Remote, mark: string): Promise<void> {
  await untilCount(remote, mark, 1);
  await until(async () => (await jobStatus(remote, job)).phase === 'run', 'the record to say that it runs');
}

/** Kills a process that the job's record names. */
export async function killRecorded(remote: Remote, which: 'runner' | 'program'): Promise<void> {
  const record = parseJobRecord((await remote.readFile(`${jobDir(remote.baseDir, job)}/status`)) ?? '');
  const pid = String(record?.[which]?.pid);
  match(pid, /^\d+$/);
  await remote.exec(['kill', '-9', pid]);
  await until(async () => !/^\d+ \(.*\) [^ZX] /.test((await remote.readFile(`/proc/${pid}/stat`)) ?? ''), `process ${pid} to end`);
}

/** 9 background processes, 9 in sessions of their own, 9 daemons whose parents are gone; all ignore what can be ignored. */
export const treeSize = 27;

/** Shell that starts the tree; each process has `mark` among its arguments. */
export function stubbornTree(mark: string): string {
  return `for i in 1 2 3 4 5 6 7 8 9; do
  (trap '' TERM HUP INT QUIT; exec sleep ${mark}) &
  setsid sh -c "trap '' TERM HUP INT QUIT; exec sleep ${mark}" &
  (setsid sh -c "trap '' TERM HUP INT QUIT; cd /; sleep ${mark} &" &)
done`;
}

const dialTimeoutMs = 5_000;

/** What the program on port 8080 says to who connects, once it does. */
export async function answerOf(remote: Remote): Promise<string> {
  let answer = '';
  await until(async () => {
    try {
      const socket = await dialReplica(await remote.address(8080), { timeoutMs: dialTimeoutMs });
      answer = (await buffer(socket)).toString();
      // Behind a forward a program that does not listen yet looks like one that says nothing.
      return answer !== '';
    } catch (error) {
      if (error instanceof DialError) return false;
      throw error;
    }
  }, 'an answer');
  return answer;
}

/** Why port 8080 cannot be connected to; undefined when it can. Behind a forward a port on which nobody listens shows as a connection that ends without a byte. */
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
