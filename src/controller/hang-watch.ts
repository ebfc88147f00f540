import type { CancelTimer, Clock } from '../shared/clock.ts';

/** How often is looked, ms. */
const lookMs = 1_000;

/** A process that says nothing for so long hangs, ms: it speaks every second or two, and an event loop that stands still so long serves nobody. */
export const hangMs = 15_000;

/** A process under watch. */
export interface Watched {
  /** Goes up whenever it is heard. */
  readonly heard: () => number;
  /** How long it has waited for a processor so far, ms: a busy machine is no fault of its. */
  readonly waitedMs: () => number;
}

/**
 * Calls `onHang` once when a process has been silent for `hangMs`. Not counted are times in which this process itself stood still, as when the
 * whole machine was suspended, and times in which the other one was ready to run but got no processor.
 */
export function watchForHang(watched: Watched, clock: Clock, onHang: () => void): CancelTimer {
  let silentMs = 0;
  let heard = watched.heard();
  let waited = watched.waitedMs();
  let lookedAt = clock.monotonic();
  const cancel = clock.every(lookMs, () => {
    const now = clock.monotonic();
    const passed = Math.min(now - lookedAt, lookMs);
    lookedAt = now;
    const waitedNow = watched.waitedMs();
    const starved = Math.max(0, waitedNow - waited);
    waited = waitedNow;
    if (watched.heard() !== heard) {
      heard = watched.heard();
      silentMs = 0;
      return;
    }
    silentMs += Math.max(0, passed - starved);
    if (silentMs < hangMs) return;
    cancel();
    onHang();
  });
  return cancel;
}
