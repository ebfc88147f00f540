import {
  closeSync,
  fstatSync,
  ftruncateSync,
  linkSync,
  mkdirSync,
  openSync,
  readdirSync,
  readSync,
  rmSync,
  statSync,
  writeSync,
} from 'node:fs';
import { appendFile, rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { Remote } from '../remote/remote.ts';
import { runCommand } from '../remote/run-command.ts';
import type { Clock } from '../shared/clock.ts';
import { wholeEnv } from '../shared/env.ts';
import { hasErrno } from '../shared/errors.ts';

/** Keeps a job's output after its machine is gone, by a hard link. Returns false for a file on another machine. */
export function linkLog(remote: Remote, source: string, target: string): boolean {
  const local = remote.localPath(source);
  if (local === undefined) return false;
  mkdirSync(dirname(target), { recursive: true, mode: 0o700 });
  try {
    linkSync(local, target);
  } catch (error) {
    // The link exists already, or there is no file to link yet.
    if (!hasErrno(error, 'EEXIST', 'ENOENT')) throw error;
    if (isOther(local, target)) {
      rmSync(target, { force: true });
      linkSync(local, target);
    }
  }
  return true;
}

/** Copies a growing file of another machine until the signal aborts. Continues where an earlier process stopped. */
export async function followLog(
  remote: Pick<Remote, 'follow'>,
  source: string,
  target: string,
  clock: Clock,
  signal: AbortSignal,
): Promise<void> {
  mkdirSync(dirname(target), { recursive: true, mode: 0o700 });
  while (!signal.aborted) {
    try {
      for await (const chunk of remote.follow(source, sizeOf(target), signal)) {
        await appendFile(target, chunk, { mode: 0o600 });
        await boundLog(target, clock);
      }
      return;
    } catch (error) {
      if (!hasErrno(error, 'ENOSPC', 'EDQUOT')) throw error;
      // The file's size is the read offset: copying continues from there once there is space.
      await clock.sleep(fullDiskPauseMs, signal);
    }
  }
}

const fullDiskPauseMs = 1_000;

/** Removes replica logs except those of `kept`: without a record, a log cannot be requested. */
export async function removeReplicaLogs(dir: string, kept: ReadonlySet<number>): Promise<void> {
  const gone = readdirSync(dir).filter((name) => !kept.has(Number.parseInt(name, 10)));
  await Promise.all(gone.map((name) => rm(join(dir, name), { force: true })));
}

/** Above this size, bytes, the older half of a log is freed, as `node/runner.sh` does where the log is written. */
const longestLog = 67_108_864;

/** The limit, bytes, once the replica has ended: a service keeps the logs of its last 20 ended replicas. */
const longestEndedLog = 16_777_216;

/** Keeps the newest 8 to 16 MiB of the log of an ended replica. Never throws. */
export async function boundEndedLog(path: string, clock: Clock): Promise<void> {
  await boundLog(path, clock, longestEndedLog).catch(() => undefined);
}

/** Punches a hole into the older part of a log that is too large. The size stays, because it is the read offset. */
export async function boundLog(path: string, clock: Clock, limit = longestLog): Promise<void> {
  const { size, blocks } = statSync(path);
  if (blocks * 512 < limit) return;
  const length = Math.max(1, size - Math.floor(limit / 2));
  const punch = ['fallocate', '--punch-hole', '--offset', '0', '--length', String(length), path];
  const punched = await runCommand(punch, { env: wholeEnv(), clock }).catch(() => undefined);
  if (punched?.exitCode !== 0) dropOlder(path, length);
}

/** Where holes cannot be punched: truncates, extends to the former length, and writes the newer part back. */
function dropOlder(path: string, length: number): void {
  const file = openSync(path, 'r+');
  try {
    const { size } = fstatSync(file);
    const newer = Buffer.alloc(size - length);
    const read = readSync(file, newer, 0, newer.length, length);
    ftruncateSync(file, 0);
    ftruncateSync(file, size);
    writeSync(file, newer, 0, read, length);
  } catch (error) {
    // Another process took the freed space: that part of the log is lost. The length stays right.
    if (!hasErrno(error, 'ENOSPC', 'EDQUOT')) throw error;
  } finally {
    closeSync(file);
  }
}

/** Waiting ends when a log has not grown for this long, ms. */
const stillMs = 5_000;
const growthPollMs = 50;

/**
 * Waits until `target` holds all that an ended job left in `source`, the machine does not answer, or the log stops
 * growing. A program's last lines explain its end; from another machine they arrive after its exit status. Never
 * throws.
 */
export async function untilKept(
  remote: Pick<Remote, 'exec' | 'localPath'>,
  source: string,
  target: string,
  clock: Clock,
  signal: AbortSignal,
): Promise<void> {
  if (remote.localPath(source) === undefined) await untilCopied(remote, source, () => sizeOf(target), clock, signal);
}

/** Waits until this many bytes of a log were taken, however they are stored. */
export async function untilCopied(
  remote: Pick<Remote, 'exec'>,
  source: string,
  copiedBytes: () => number,
  clock: Clock,
  signal: AbortSignal,
): Promise<void> {
  const counted = await remote.exec(['wc', '-c', source], { signal, timeoutMs: stillMs }).catch(() => undefined);
  const expectedBytes = counted?.exitCode === 0 ? Number.parseInt(counted.stdout, 10) : 0;
  let size = copiedBytes();
  let grewAt = clock.monotonic();
  while (size < expectedBytes && !signal.aborted && clock.monotonic() - grewAt < stillMs) {
    await clock.sleep(growthPollMs, signal);
    const now = copiedBytes();
    if (now !== size) grewAt = clock.monotonic();
    size = now;
  }
}

/** Whether both files exist and are not hard links to one file. */
function isOther(a: string, b: string): boolean {
  const [one, two] = [statSync(a, { throwIfNoEntry: false }), statSync(b, { throwIfNoEntry: false })];
  return one !== undefined && two !== undefined && (one.ino !== two.ino || one.dev !== two.dev);
}

const sizeOf = (path: string): number => statSync(path, { throwIfNoEntry: false })?.size ?? 0;

/** The last lines of a log are searched within this many bytes. */
const tailBytes = 16_384;

/** The last lines of a file; empty when the file does not exist. */
export function lastLines(path: string, count: number): readonly string[] {
  if (sizeOf(path) === 0) return [];
  const lines = endOf(path, tailBytes).split('\n');
  return (lines.at(-1) === '' ? lines.slice(0, -1) : lines).slice(-count);
}

/** The last `longest` bytes of a file, none before `offset`. A file shorter than `offset` was rotated: from 0 on. */
export function endOf(path: string, longest: number, offset = 0): string {
  const file = openSync(path, 'r');
  try {
    const { size } = fstatSync(file);
    const from = Math.max(offset > size ? 0 : offset, size - longest);
    const bytes = Buffer.alloc(size - from);
    return bytes.toString('utf8', 0, readSync(file, bytes, 0, bytes.length, from));
  } finally {
    closeSync(file);
  }
}
