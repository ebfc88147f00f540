import type { Clock } from '../../shared/clock.ts';
import { hasAwsCode } from './errors.ts';

/** Pauses while AWS has not yet told all of its parts about what was just made, ms: some 15 seconds together. */
const pausesMs = [100, 200, 400, 800, 1_500, 2_000, 2_500, 3_500, 4_000];

/** What waiting needs. */
export interface Patience {
  readonly clock: Clock;
  readonly signal: AbortSignal | undefined;
}

/** Repeats a call while it fails with one of the codes, which say that something isn't known there yet. The last failure is thrown. */
export async function whileNotYet<T>({ clock, signal }: Patience, codes: readonly string[], call: () => Promise<T>): Promise<T> {
  for (const pause of pausesMs) {
    try {
      return await call();
    } catch (error) {
      if (!hasAwsCode(error, ...codes)) throw error;
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
