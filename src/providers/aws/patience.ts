import type { Clock } from '../../shared/clock.ts';
import { hasAwsCode, isWorthRepeating } from './errors.ts';

/** Pauses while AWS has not yet told all of its parts about what was just made, ms: some 15 seconds together. */
const pausesMs = [100, 200, 400, 800, 1_500, 2_000, 2_500, 3_500, 4_000];

/** What waiting needs. */
export interface Patience {
  readonly clock: Clock;
  readonly signal: AbortSignal | undefined;
}

/** Repeats a call while it fails with one of the codes, which say that something isn't known there yet. The last failure is thrown. */
export function whileNotYet<T>(patience: Patience, codes: readonly string[], call: () => Promise<T>): Promise<T> {
  return repeatWhile(patience, pausesMs, (error) => hasAwsCode(error, ...codes), call);
}

/** Pauses after a request that AWS did not get to, ms. */
const requestPausesMs = [200, 600, 1_500];

/** Repeats a request that bears a token while AWS did not get to it, or it is not known whether it did. The last failure is thrown. */
export function whileUnanswered<T>(patience: Patience, call: () => Promise<T>): Promise<T> {
  return repeatWhile(patience, requestPausesMs, isWorthRepeating, call);
}

async function repeatWhile<T>(
  { clock, signal }: Patience,
  pauses: readonly number[],
  isPassing: (error: unknown) => boolean,
  call: () => Promise<T>,
): Promise<T> {
  for (const pause of pauses) {
    try {
      return await call();
    } catch (error) {
      if (signal?.aborted === true || !isPassing(error)) throw error;
    }
    await clock.sleep(pause, signal);
    signal?.throwIfAborted();
  }
  return call();
}

/** Repeats a call until it finds something; undefined when that takes too long. */
export async function untilFound<T>({ clock, signal }: Patience, call: () => Promise<T | undefined>): Promise<T | undefined> {
  for (const pause of pausesMs) {
    const found = await call();
    if (found !== undefined) return found;
    await clock.sleep(pause, signal);
    signal?.throwIfAborted();
  }
  return call();
}
