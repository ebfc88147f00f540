import { closeSync, linkSync, mkdirSync, openSync, readSync, rmSync, statSync } from 'node:fs';
import { appendFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import type { Remote } from '../remote/remote.ts';
import type { Clock } from '../shared/clock.ts';
import { hasErrno } from '../shared/errors.ts';

/**
 * Makes a job's output stay readable here after its machine is gone. On this machine a second name for the same file does, which costs nothing;
 * false for a file that is elsewhere.
 */
export function linkLog(remote: Remote, source: string, target: string): boolean {
  const local = remote.localPath(source);
  if (local === undefined) return false;
  mkdirSync(dirname(target), { recursive: true, mode: 0o700 });
  try {
    linkSync(local, target);
  } catch (error) {
    // It was linked before, or there is nothing to link yet.
    if (!hasErrno(error, 'EEXIST', 'ENOENT')) throw error;
    if (isOther(local, target)) {
      rmSync(target, { force: true });
      linkSync(local, target);
    }
  }
  return true;
}

/** The same for a file elsewhere: what is added to it is added here, until the signal aborts, going on where an earlier process stopped. */
export async function followLog(remote: Remote, source: string, target: string, signal: AbortSignal): Promise<void> {
  mkdirSync(dirname(target), { recursive: true, mode: 0o700 });
  for await (const chunk of remote.follow(source, sizeOf(target), signal)) await appendFile(target, chunk, { mode: 0o600 });
}

/** A log that has not grown for so long is not waited for, ms. */
const stillMs = 5_000;
const growthPollMs = 50;

/**
 * Waits until `target` has what a job that has ended left in `source`, which is being followed: a program's last words explain its end, and on a machine
 * elsewhere they come later than the news of it. Never throws: a machine that does not answer, or a log that grows no more, is not waited for.
 */
export async function untilKept(
  remote: Pick<Remote, 'exec' | 'localPath'>,
  source: string,
  target: string,
  clock: Clock,
  signal: AbortSignal,
): Promise<void> {
  if (remote.localPath(source) === undefined) await untilTaken(remote, source, () => sizeOf(target), clock, signal);
}

/** The same for a log of which so many bytes were taken, however they are kept. */
export async function untilTaken(
  remote: Pick<Remote, 'exec'>,
  source: string,
  taken: () => number,
  clock: Clock,
  signal: AbortSignal,
): Promise<void> {
  const counted = await remote.exec(['wc', '-c', source], { signal, timeoutMs: stillMs }).catch(() => undefined);
  const wanted = counted?.exitCode === 0 ? Number.parseInt(counted.stdout, 10) : 0;
  let size = taken();
  let grewAt = clock.monotonic();
  while (size < wanted && !signal.aborted && clock.monotonic() - grewAt < stillMs) {
    await clock.sleep(growthPollMs, signal);
    const now = taken();
    if (now !== size) grewAt = clock.monotonic();
    size = now;
  }
}

/** Whether both are there and are not one file under two names. */
function isOther(a: string, b: string): boolean {
  const [one, two] = [statSync(a, { throwIfNoEntry: false }), statSync(b, { throwIfNoEntry: false })];
  return one !== undefined && two !== undefined && (one.ino !== two.ino || one.dev !== two.dev);
}

const sizeOf = (path: string): number => statSync(path, { throwIfNoEntry: false })?.size ?? 0;

/** The end of a log is looked for within so many bytes. */
const tailBytes = 16_384;

/** The last lines of a file; empty when it is not there. */
export function lastLines(path: string, count: number): readonly string[] {
  const size = sizeOf(path);
  if (size === 0) return [];
  const file = openSync(path, 'r');
  try {
    const buffer = Buffer.alloc(Math.min(size, tailBytes));
    const read = readSync(file, buffer, 0, buffer.length, size - buffer.length);
    const lines = buffer.toString('utf8', 0, read).split('\n');
    return (lines.at(-1) === '' ? lines.slice(0, -1) : lines).slice(-count);
  } finally {
    closeSync(file);
  }
}
