import type { CancelTimer, Clock } from '../../shared/clock.ts';

/** Poll interval, ms. */
const pollIntervalMs = 1_000;

/**
 * A process silent for this long hangs, ms. A healthy process sends a heartbeat every second or two. An event loop
 * blocked for this long serves no requests.
 */
export const hangMs = 15_000;

/** A process under watch. */
interface Watched {
  /** Number of heartbeats received. */
  readonly heartbeats: () => number;
  /** Total time for which the process waited for a CPU, ms. A busy machine does not count as a hang. */
  readonly waitedMs: () => number;
}

/**
 * Calls `onHang` once when a process has been silent for `hangMs`. Two kinds of time do not count: time in which this
 * process itself was stopped, for example while the machine was suspended, and time in which the watched process was
 * runnable but got no CPU.
 */
export function watchForHang(watched: Watched, clock: Clock, onHang: () => void): CancelTimer {
  let silentMs = 0;
  let lastHeartbeats = watched.heartbeats();
  let waited = watched.waitedMs();
  let checkedAt = clock.monotonic();
  const cancel = clock.every(pollIntervalMs, () => {
    const now = clock.monotonic();
    const passed = Math.min(now - checkedAt, pollIntervalMs);
    checkedAt = now;
    const waitedNow = watched.waitedMs();
    const starved = Math.max(0, waitedNow - waited);
    waited = waitedNow;
    if (watched.heartbeats() !== lastHeartbeats) {
      lastHeartbeats = watched.heartbeats();
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
