import type { CancelTimer, Clock } from '../../shared/clock.ts';

const pollIntervalMs = 1_000;

/** A process silent for this long hangs, ms. A healthy one sends a heartbeat every second or two. */
export const hangMs = 15_000;

/** A process that is found stopped this often in a row is hung. One that is stopped and continued at once is not. */
const stoppedPolls = 2;

/** A process and what the operating system says about it. */
export interface Watched {
  readonly heartbeats: () => number;
  /** Total time for which the process waited for a CPU, ms. A busy machine is no hang. */
  readonly waitedMs: () => number;
  /** Whether a signal has stopped the process: the load of the machine cannot be the reason of its silence. */
  readonly isStopped: () => boolean;
}

/**
 * Calls `onHang` once after `limitMs` of silence, or when the process stays stopped for two seconds. Does not count time
 * in which this process itself was stopped (a suspended machine), or in which the watched process was runnable but got
 * no CPU.
 */
export function watchForHang(watched: Watched, clock: Clock, onHang: () => void, limitMs = hangMs): CancelTimer {
  let silentMs = 0;
  let stopped = 0;
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
    stopped = watched.isStopped() ? stopped + 1 : 0;
    if (stopped >= stoppedPolls) {
      cancel();
      onHang();
      return;
    }
    if (watched.heartbeats() !== lastHeartbeats) {
      lastHeartbeats = watched.heartbeats();
      silentMs = 0;
      return;
    }
    silentMs += Math.max(0, passed - starved);
    if (silentMs < limitMs) return;
    cancel();
    onHang();
  });
  return cancel;
}
