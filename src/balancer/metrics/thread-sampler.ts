import type { Clock } from '../../shared/clock.ts';
import type { ThreadMetrics } from './thread-metrics.ts';

const sampleMs = 100;
/** Asking the system what was used costs more than looking at the clock. */
const samplesPerUsage = 10;
const msPerSecond = 1_000;
const microsecondsPerSecond = 1_000_000;

/** What a thread has used since it started, s. */
export interface ThreadUsage {
  readonly busy: number;
  readonly cpu: number;
}

/** Of the thread that asks. */
export function readThreadUsage(): ThreadUsage {
  const { user, system } = process.threadCpuUsage();
  return { busy: performance.eventLoopUtilization().active / msPerSecond, cpu: (user + system) / microsecondsPerSecond };
}

/**
 * Looks ten times a second how late a timer fires, and each second what the thread has used. Node's own histogram of the delay counts from one
 * firing to the next, its own interval included, and wakes the thread more often.
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
