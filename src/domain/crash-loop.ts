import { seededRandom } from '../shared/random.ts';

/** One replica that ended by itself. */
export interface Failure {
  readonly at: number;
  readonly everReady: boolean;
  /** How long it had been ready when it failed, ms; 0 when it never was. */
  readonly readyMs: number;
  /** It was killed from outside (SIGKILL, a lost machine) rather than ending by itself. */
  readonly killed: boolean;
  /** Its place tried to start it and says why it cannot, as with an image that cannot be had; absent: it started, or something else was in the way. */
  readonly neverStarted?: boolean;
}

/** What the guard says about new launches. */
export interface LaunchGate {
  /** No launch before this time, ms; 0 when nothing holds it back. */
  readonly notBefore: number;
  /** No launch that would make more replicas than this live: no more are tried than it takes to give up. */
  readonly atMost: number;
  /** Rounds of failures in a row. */
  readonly rounds: number;
  /** It never worked and is not going to: no more launches until the user changes something. */
  readonly gaveUp: boolean;
}

/** A replica that was ready for so long worked: its failure is an accident and not a loop. */
const stableMs = 60_000;
/** The first pause; doubles with each round. */
const firstPauseMs = 1_000;
const longestPauseMs = 300_000;
/** Rounds after which a service that never had a ready replica is given up: about 15 s of pauses. */
const roundsToGiveUp = 5;
/** Replicas that could not be started after which it is given up: their place has tried each of them several times already. */
const startsToGiveUp = 3;
/** Killed from outside, replicas that had been ready are replaced at once, up to so many in ten minutes: one each second. */
const freeKills = 600;
const freeKillsSpanMs = 600_000;
/** Failures that are older say nothing about today, ms: twice the longest pause, so that a loop never forgets itself. */
const forgottenMs = 2 * longestPauseMs;
/** More failures than this are never needed for a decision. */
const longestMemory = 700;

/** Adds a failure to what is remembered. */
export function rememberFailure(failures: readonly Failure[], failure: Failure): readonly Failure[] {
  return [...failures, failure].slice(-longestMemory);
}

/**
 * Whether and when to launch again. All replicas of a service run the same program, so failures are counted for the service, in rounds of
 * `target` failures; after each round the pause doubles from 1 s to 5 min, with ±20 % jitter that follows from the last failure's time, so
 * that every pass computes the same.
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
  const pause = Math.min(longestPauseMs, firstPauseMs * 2 ** Math.min(rounds - 1, 20));
  const jitter = 0.8 + 0.4 * seededRandom(last.at)();
  // The clock may have been set back since: nobody waits longer than the longest pause.
  const notBefore = Math.min(last.at + Math.min(longestPauseMs, pause * jitter), now + longestPauseMs);
  return { notBefore, atMost, rounds, gaveUp: false };
}

/** The failures since the last sign of health that say something about the program. */
function countedFailures(failures: readonly Failure[]): readonly Failure[] {
  let counted: Failure[] = [];
  let kills: Failure[] = [];
  for (const failure of failures) {
    if (failure.readyMs >= stableMs) {
      counted = [];
    } else if (failure.killed && failure.everReady) {
      kills = [...kills.filter((kill) => kill.at > failure.at - freeKillsSpanMs), failure];
      // Readiness shows that the program works; only so many kills in so short a time look like the out-of-memory killer at work.
      if (kills.length <= freeKills) counted = [];
      else counted.push(failure);
    } else {
      counted.push(failure);
    }
  }
  return counted;
}
