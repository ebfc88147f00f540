import { setTimeout as sleepFor } from 'node:timers/promises';

/** Stops a timer. Further calls, or a call after it fired, do nothing. */
export type CancelTimer = () => void;

/** The only source of time. Tests pass a clock that they advance by hand. */
export interface Clock {
  /** Wall time in ms since the epoch: for records and users. */
  now(): number;
  /** Monotonic ms, the same in all threads: for durations and deadlines; unaffected by changes of the system time. */
  monotonic(): number;
  /** Resolves early, without throwing, when `signal` aborts. */
  sleep(ms: number, signal?: AbortSignal): Promise<void>;
  /** Calls `fire` once after `ms`. Does not keep the process alive. */
  after(ms: number, fire: () => void): CancelTimer;
  /** Calls `fire` each `ms`. Does not keep the process alive. */
  every(ms: number, fire: () => void): CancelTimer;
}

/** `performance.now()` counts from its thread's start. With this, all threads and processes agree on the time, ms. */
const sinceBoot = Number(process.hrtime.bigint()) / 1_000_000 - performance.now();

/** The machine's own clock. */
export const systemClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now() + sinceBoot,
  async sleep(ms, signal) {
    try {
      await sleepFor(Math.max(0, ms), undefined, signal === undefined ? {} : { signal });
    } catch (error) {
      if (!(error instanceof Error) || error.name !== 'AbortError') throw error;
    }
  },
  after(ms, fire) {
    const timer = setTimeout(fire, Math.max(0, ms));
    timer.unref();
    return () => clearTimeout(timer);
  },
  every(ms, fire) {
    const timer = setInterval(fire, ms);
    timer.unref();
    return () => clearInterval(timer);
  },
};

/** A point in time (ms since the epoch) for records and users: UTC, ISO 8601. */
export function isoTime(ms: number): string {
  return new Date(ms).toISOString();
}
