import { delayMs, type Backoff } from '../../shared/backoff.ts';
import { seededRandom } from '../../shared/random.ts';

/** One replica that ended by itself. */
export interface Failure {
  readonly at: number;
  readonly everReady: boolean;
  /** How long it had been ready when it failed, ms; 0 when it was never ready. */
  readonly readyMs: number;
  /** Whether it was killed from outside (SIGKILL, a lost machine) rather than ending by itself. */
  readonly killed: boolean;
  /**
   * Whether its provider tried to start it and reported why it cannot, for example an image that cannot be pulled.
   * Absent: it started, or another cause prevented the start.
   */
  readonly neverStarted?: boolean;
}

/** Decision of the guard about new launches. */
export interface LaunchGate {
  /** No launch before this time, ms; 0 when there is no delay. */
  readonly notBefore: number;
  /**
   * Upper limit of living replicas for new launches. It keeps the number of attempts below the number that makes the
   * guard give up.
   */
  readonly atMost: number;
  /** Consecutive rounds of failures. */
  readonly rounds: number;
  /** The service never worked and is not expected to: no more launches until the user changes something. */
  readonly gaveUp: boolean;
}

/** A replica that was ready for this long counts as working, ms: its failure is an accident, not a crash loop. */
const stableMs = 60_000;
/** Backoff between rounds of failures. */
const roundBackoff: Backoff = { firstMs: 1_000, longestMs: 300_000 };
/**
 * After this many rounds the guard gives up a service that never had a ready replica. The delays add up to about 15 s.
 */
const roundsToGiveUp = 5;
/**
 * After this many replicas that could not be started the guard gives up. The provider has already tried each one
 * several times.
 */
const startsToGiveUp = 3;
/**
 * Replicas that had been ready and were killed from outside are replaced at once, up to this many in ten minutes: one
 * per second.
 */
const freeKills = 600;
const freeKillsSpanMs = 600_000;
/** Older failures do not count, ms. Twice the longest delay, so that a crash loop never drops out of the memory. */
const forgottenMs = 2 * roundBackoff.longestMs;
/** Limit of remembered failures: a decision never needs more. */
const longestMemory = 700;

/** Adds a failure to the remembered ones. */
export function rememberFailure(failures: readonly Failure[], failure: Failure): readonly Failure[] {
  return [...failures, failure].slice(-longestMemory);
}

/**
 * Decides whether and when to launch again.
 * All replicas of a service run the same program. So failures are counted per service, in rounds of `target` failures.
 * After each round the delay doubles, from 1 s to 5 min, with ±20 % jitter. The jitter is derived from the last
 * failure's time, so every pass computes the same delay.
 */
export function launchGate(failures: readonly Failure[], target: number, serviceEverReady: boolean, now: number): LaunchGate {
  const counted = countedFailures(failures.filter((failure) => failure.at > now - forgottenMs));
  const last = counted.at(-1);
  if (last === undefined) return { notBefore: 0, atMost: Number.POSITIVE_INFINITY, rounds: 0, gaveUp: false };
  const rounds = Math.ceil(counted.length / Math.max(1, target));
  const neverStarted = counted.filter((failure) => failure.neverStarted).length;
  const startsLeft = startsToGiveUp - neverStarted;
  if (!serviceEverReady && (rounds >= roundsToGiveUp || startsLeft <= 0)) return { notBefore: 0, atMost: 0, rounds, gaveUp: true };
  const atMost = !serviceEverReady && neverStarted > 0 ? startsLeft : Number.POSITIVE_INFINITY;
  const pause = delayMs(roundBackoff, rounds);
  const jitter = 0.8 + 0.4 * seededRandom(last.at)();
  // The clock may have been set back since the failure. The wait never exceeds the longest delay.
  const notBefore = Math.min(last.at + Math.min(roundBackoff.longestMs, pause * jitter), now + roundBackoff.longestMs);
  return { notBefore, atMost, rounds, gaveUp: false };
}

/** Failures since the last sign of health that indicate a fault of the program. */
function countedFailures(failures: readonly Failure[]): readonly Failure[] {
  let counted: Failure[] = [];
  let kills: Failure[] = [];
  for (const failure of failures) {
    if (failure.readyMs >= stableMs) {
      counted = [];
    } else if (failure.killed && failure.everReady) {
      kills = [...kills.filter((kill) => kill.at > failure.at - freeKillsSpanMs), failure];
      // Readiness shows that the program works. Only this many kills in such a short time suggest the out-of-memory
      // killer.
      if (kills.length <= freeKills) counted = [];
      else counted.push(failure);
    } else {
      counted.push(failure);
    }
  }
  return counted;
}
