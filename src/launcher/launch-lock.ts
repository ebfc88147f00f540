import { linkSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import type { Clock } from '../shared/clock.ts';
import { hasErrno, SvcError } from '../shared/errors.ts';
import { identifyProcess, isAlive, readIdentity } from '../shared/system/process-identity.ts';
import { randomHex } from '../shared/hex.ts';

const pollMs = 200;

interface LockDeps {
  readonly clock: Clock;
  readonly signal: AbortSignal;
  /** Called once when another process holds the lock, with its pid if known. */
  readonly onWait: (pid: number | undefined) => void;
}

/**
 * Runs `work` while no other process of this user runs work under the same file. The file names the holder: a dead
 * process's lock is void. Throws SVC_ABORTED when cancelled while waiting.
 */
export async function withLaunchLock<Result>(
  file: string,
  { clock, signal, onWait }: LockDeps,
  work: () => Promise<Result>,
): Promise<Result> {
  let hasWaited = false;
  while (!tryTake(file)) {
    if (!hasWaited) onWait(readIdentity(file)?.pid);
    hasWaited = true;
    await clock.sleep(pollMs, signal);
    if (signal.aborted) throw new SvcError('SVC_ABORTED', 'Interrupted while another command was bringing up the controller.');
  }
  try {
    return await work();
  } finally {
    rmSync(file, { force: true });
  }
}

/** Runs `work` under the same lock if it is free now; otherwise does nothing. */
export function withFreeLock(file: string, work: () => void): void {
  // If the holder has died, the first attempt only removes its lock.
  if (!tryTake(file) && !tryTake(file)) return;
  try {
    work();
  } finally {
    rmSync(file, { force: true });
  }
}

function tryTake(file: string): boolean {
  const own = identifyProcess(process.pid);
  const draft = `${file}.${randomHex(8)}`;
  writeFileSync(draft, JSON.stringify(own), { mode: 0o600 });
  try {
    // Only one process can create the link, and the file is never empty.
    linkSync(draft, file);
    return true;
  } catch (error) {
    if (!hasErrno(error, 'EEXIST')) throw error;
    removeAbandoned(file);
    return false;
  } finally {
    rmSync(draft, { force: true });
  }
}

/** Of several processes that find an abandoned lock, one renames it. The others find none, or leave a new one alone. */
function removeAbandoned(file: string): void {
  const holder = readIdentity(file);
  if (holder === undefined || isAlive(holder)) return;
  const renamed = `${file}.${randomHex(8)}`;
  try {
    renameSync(file, renamed);
  } catch (error) {
    if (hasErrno(error, 'ENOENT')) return;
    throw error;
  }
  const taken = readIdentity(renamed);
  // Another process was faster: its lock is put back unless a newer one exists.
  if (taken !== undefined && isAlive(taken)) putBack(renamed, file);
  rmSync(renamed, { force: true });
}

function putBack(renamed: string, file: string): void {
  try {
    linkSync(renamed, file);
  } catch (error) {
    if (!hasErrno(error, 'EEXIST')) throw error;
  }
}
