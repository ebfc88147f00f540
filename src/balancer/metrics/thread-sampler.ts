import type { Clock } from '../../shared/clock.ts';
import type { ThreadMetrics } from './thread-metrics.ts';

const sampleMs = 100;
/** Asking the system for the usage costs more than reading the clock. */
const samplesPerUsage = 10;
const msPerSecond = 1_000;
const microsecondsPerSecond = 1_000_000;

/** Since the thread started, s. */
interface ThreadUsage {
  readonly busy: number;
  readonly cpu: number;
}

/** The usage of the calling thread. */
export function readThreadUsage(): ThreadUsage {
  const { user, system } = process.threadCpuUsage();
  return { busy: performance.eventLoopUtilization().active / msPerSecond, cpu: (user + system) / microsecondsPerSecond };
}

/**
 * Checks ten times a second how late a timer fires, and each second the thread's usage. Node's own histogram of the
 * delay includes its interval, and wakes the thread more often.
 */
export function sampleThread(metrics: ThreadMetrics, clock: Clock, readUsage: () => ThreadUsage = readThreadUsage): void {
  let due = clock.monotonic() + sampleMs;
  let samples = 0;
  let before = readUsage();
  clock.every(sampleMs, () => {
    const now = clock.monotonic();
    metrics.timerFired(Math.max(0, now - due) / msPerSecond);
    due = now + sampleMs;
    samples += 1;
    if (samples % samplesPerUsage !== 0) return;
    const usage = readUsage();
    metrics.used(usage.busy - before.busy, usage.cpu - before.cpu);
    before = usage;
  });
}
