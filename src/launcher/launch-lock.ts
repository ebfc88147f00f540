import { linkSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import type { Clock } from '../shared/clock.ts';
import { hasErrno, SvcError } from '../shared/errors.ts';
import { readJsonFile } from '../shared/parse-json.ts';
import { identifyProcess, isAlive, isProcessIdentity, type ProcessIdentity } from '../shared/process-identity.ts';
import { randomHex } from '../shared/random-hex.ts';

const pollMs = 200;

/** What waiting for the lock needs. */
export interface LockDeps {
  readonly clock: Clock;
  readonly signal: AbortSignal;
  /** Called once when somebody else has it. */
  readonly onWait: () => void;
}

/**
 * Runs `work` while no other process of this user does so under the same file. A holder that died holds nothing: the file names its process.
 * Throws SVC_ABORTED when cancelled while waiting.
 */
export async function withLaunchLock<Result>(
  file: string,
  { clock, signal, onWait }: LockDeps,
  work: () => Promise<Result>,
): Promise<Result> {
  let hasWaited = false;
  while (!tryTake(file)) {
    if (!hasWaited) onWait();
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

function tryTake(file: string): boolean {
  const own = identifyProcess(process.pid);
  const draft = `${file}.${randomHex(8)}`;
  writeFileSync(draft, JSON.stringify(own), { mode: 0o600 });
  try {
    // A link is made by one process only, and with its content.
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

/** Of several that find it abandoned one renames it away; the others find it gone, or somebody's new one, which they leave alone. */
function removeAbandoned(file: string): void {
  const holder = holderOf(file);
  if (holder === undefined || isAlive(holder)) return;
  const away = `${file}.${randomHex(8)}`;
  try {
    renameSync(file, away);
  } catch (error) {
    if (hasErrno(error, 'ENOENT')) return;
    throw error;
  }
  const taken = holderOf(away);
  // Somebody was quicker, and this is theirs: it goes back unless there is a newer one.
  if (taken !== undefined && isAlive(taken)) putBack(away, file);
  rmSync(away, { force: true });
}

function putBack(away: string, file: string): void {
  try {
    linkSync(away, file);
  } catch (error) {
    if (!hasErrno(error, 'EEXIST')) throw error;
  }
}

/** Undefined also when the lock is given back at this moment. */
function holderOf(file: string): ProcessIdentity | undefined {
  const value = readJsonFile(file)?.value;
  return isProcessIdentity(value) ? value : undefined;
}
