import { delayMs, type Backoff } from '../../shared/backoff.ts';
import { seededRandom } from '../../shared/random.ts';

/** One replica that ended by itself. */
export interface Failure {
  readonly at: number;
  /** The replica's version; absent in records from before updates, which count for each version. */
  readonly version?: number;
  readonly everReady: boolean;
  /** How long it had been ready, ms; 0 when it was never ready. */
  readonly readyMs: number;
  /** Killed from outside (SIGKILL, a lost machine) rather than ended by itself. */
  readonly killed: boolean;
  /** Its provider reported why it cannot start it, such as an image that cannot be pulled. Absent: any other case. */
  readonly neverStarted?: boolean;
}

/** Decision of the guard about new launches. */
export interface LaunchGate {
  /** No launch before this time, ms; 0: no delay. */
  readonly notBefore: number;
  /** Upper limit of living replicas for a launch. Keeps the attempts below the number that makes the guard give up. */
  readonly atMost: number;
  readonly rounds: number;
  /** The service never worked: no more launches until the user changes something. */
  readonly gaveUp: boolean;
}

/** A replica that was ready for this long counts as working, ms: its failure is an accident, not a crash loop. */
const stableMs = 60_000;
const roundBackoff: Backoff = { firstMs: 1_000, longestMs: 300_000 };
/** After this many rounds the guard gives up a service that was never ready. The delays add up to about 15 s. */
const roundsToGiveUp = 5;
/** After this many replicas that could not start, the guard gives up. The provider has already retried each of them. */
const startsToGiveUp = 3;
/** This many once-ready replicas that are killed from outside are replaced at once: one per second for ten minutes. */
const freeKills = 600;
const freeKillsSpanMs = 600_000;
/** Older failures do not count, ms. Twice the longest delay, so that a crash loop is never forgotten. */
const forgottenMs = 2 * roundBackoff.longestMs;
/** Limit of remembered failures: a decision never needs more. */
const longestMemory = 700;

/** Adds a failure to the remembered ones. */
export function rememberFailure(failures: readonly Failure[], failure: Failure): readonly Failure[] {
  return [...failures, failure].slice(-longestMemory);
}

/**
 * Decides whether and when to launch again. All replicas run the same program, so failures count per service, in rounds
 * of `target`. Each round doubles the delay, from 1 s to 5 min, ±20 % jitter. The jitter comes from the last failure's
 * time: every pass computes the same delay.
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
  // The clock may have been set back since the failure: never wait longer than the longest delay.
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
      // Readiness shows that the program works. Only more kills than this suggest the out-of-memory killer.
      if (kills.length <= freeKills) counted = [];
      else counted.push(failure);
    } else {
      counted.push(failure);
    }
  }
  return counted;
}
