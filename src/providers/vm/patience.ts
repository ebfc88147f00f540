import type { Clock } from '../../shared/clock.ts';

/** Backoff while a cloud propagates a new resource, ms: some 15 seconds together. */
const pausesMs = [100, 200, 400, 800, 1_500, 2_000, 2_500, 3_500, 4_000];

/** Dependencies of waiting. */
export interface Patience {
  readonly clock: Clock;
  readonly signal: AbortSignal | undefined;
}

type IsPassing = (error: unknown) => boolean;

/** Repeats a call while the cloud does not know a new resource yet. Throws the last error. */
export function whileNotYet<T>(patience: Patience, isPassing: IsPassing, call: () => Promise<T>): Promise<T> {
  return repeatWhile(patience, pausesMs, isPassing, call);
}

/** Backoff after a request that the cloud did not process, ms. */
const requestPausesMs = [200, 600, 1_500];

/** Repeats an idempotent request while it is not processed or not answered. Throws the last error. */
export function whileUnanswered<T>(patience: Patience, isWorthRepeating: IsPassing, call: () => Promise<T>): Promise<T> {
  return repeatWhile(patience, requestPausesMs, isWorthRepeating, call);
}

async function repeatWhile<T>(
  { clock, signal }: Patience,
  pauses: readonly number[],
  isPassing: IsPassing,
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

/** Repeats a call until it returns a result; undefined when that takes too long. */
export async function untilFound<T>({ clock, signal }: Patience, call: () => Promise<T | undefined>): Promise<T | undefined> {
  for (const pause of pausesMs) {
    const found = await call();
    if (found !== undefined) return found;
    await clock.sleep(pause, signal);
    signal?.throwIfAborted();
  }
  return call();
}
