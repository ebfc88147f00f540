import { mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import type { CancelTimer, Clock } from '../../shared/clock.ts';
import { SvcError } from '../../shared/errors.ts';
import { noFence, type Fence } from '../../shared/fence.ts';
import { isObject, parseJson } from '../../shared/json.ts';
import { bootId } from '../../shared/system/process-identity.ts';

/** The time until which processes of this machine may act for its controller. */
interface FenceRecord {
  readonly term: number;
  readonly holder: string;
  /** Monotonic clock, shared by all processes of a machine, ms. */
  readonly untilMonotonicMs: number;
  /** Wall clock, which also advances while the machine is suspended, ms. */
  readonly untilWallMs: number;
  /** The monotonic clock restarts with each boot. */
  readonly bootId: string;
}

/** Records that this machine leads until `untilMonotonicMs`. Not flushed: a boot invalidates the record anyway. */
export function writeFence(path: string, term: number, holder: string, untilMonotonicMs: number, clock: Clock): void {
  const untilWallMs = clock.now() + untilMonotonicMs - clock.monotonic();
  const record: FenceRecord = { term, holder, untilMonotonicMs, untilWallMs, bootId: bootId() };
  const temporary = `${path}.${process.pid}.tmp`;
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  writeFileSync(temporary, JSON.stringify(record), { mode: 0o600 });
  renameSync(temporary, path);
}

/** From now on no process of this machine may act. */
export function revokeFence(path: string): void {
  rmSync(path, { force: true });
}

/** Permits actions of the given term while the file says that this machine leads with it. */
export function fileFence(path: string, term: number, clock: Clock): Fence {
  return {
    check() {
      const why = whyNot(readFence(path), term, clock);
      if (why !== undefined) throw new SvcError('SVC_NOT_LEADER', `This controller does not lead any more: ${why}.`);
    },
  };
}

/** The fence of a process that was started for a term; permits everything where controllers have no rivals. */
export function processFence(path: string, term: number | undefined, clock: Clock): Fence {
  return term === undefined ? noFence : fileFence(path, term, clock);
}

/** This home's last lease holder in this boot; undefined after a release. Dead if the caller has the home's lock. */
export function formerHolder(path: string): string | undefined {
  const record = readFence(path);
  return record?.bootId === bootId() ? record.holder : undefined;
}

/** How often a process checks whether it may still act, ms. Each provider call is checked in addition. */
const pollIntervalMs = 200;

/** Calls `onLost` once when the fence permits nothing any more. */
export function watchFence(fence: Fence, clock: Clock, onLost: (error: unknown) => void): CancelTimer {
  const cancel = clock.every(pollIntervalMs, () => {
    try {
      fence.check();
    } catch (error) {
      cancel();
      onLost(error);
    }
  });
  return cancel;
}

function whyNot(record: FenceRecord | undefined, term: number, clock: Clock): string | undefined {
  if (record === undefined) return 'its lease was released, or cannot be read';
  if (record.term !== term) return `its term ${term} is over, now is term ${record.term}`;
  if (record.bootId !== bootId()) return 'its lease is of an earlier boot of the machine';
  if (clock.monotonic() >= record.untilMonotonicMs || clock.now() >= record.untilWallMs) return 'its lease was not renewed in time';
  return undefined;
}

function readFence(path: string): FenceRecord | undefined {
  let text: string;
  try {
    text = readFileSync(path, 'utf8');
  } catch {
    // Missing or unreadable: a process that cannot check the fence must not act.
    return undefined;
  }
  const value = parseJson(text);
  return isFenceRecord(value) ? value : undefined;
}

function isFenceRecord(value: unknown): value is FenceRecord {
  return (
    isObject(value) &&
    typeof value['term'] === 'number' &&
    typeof value['holder'] === 'string' &&
    typeof value['untilMonotonicMs'] === 'number' &&
    typeof value['untilWallMs'] === 'number' &&
    typeof value['bootId'] === 'string'
  );
}
