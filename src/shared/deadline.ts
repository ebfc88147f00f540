import type { Clock } from './clock.ts';

/** Runs work with a promise that settles after `ms`: the work leaves out later answers. Throws the signal's reason. */
export async function withLateness<Result>(
  clock: Clock,
  ms: number,
  work: (late: Promise<undefined>) => Promise<Result>,
  signal?: AbortSignal,
): Promise<Result> {
  const over = new AbortController();
  const late = clock.sleep(ms, signal === undefined ? over.signal : AbortSignal.any([signal, over.signal])).then(() => undefined);
  try {
    return await work(late);
  } finally {
    over.abort();
    signal?.throwIfAborted();
  }
}

/** Runs work with a time limit, ms. Then its signal aborts and `tooLong()` is thrown, even if work goes on. */
export async function withDeadline<Result>(
  clock: Clock,
  ms: number,
  work: (signal: AbortSignal) => Promise<Result>,
  tooLong: () => Error,
  signal?: AbortSignal,
): Promise<Result> {
  const over = new AbortController();
  const both = signal === undefined ? over.signal : AbortSignal.any([signal, over.signal]);
  const { promise, reject } = Promise.withResolvers<never>();
  const giveUp = (): void => reject(signal?.aborted === true ? signal.reason : tooLong());
  both.addEventListener('abort', giveUp, { once: true });
  if (both.aborted) giveUp();
  const cancel = clock.after(ms, () => over.abort());
  try {
    return await Promise.race([work(both), promise]);
  } finally {
    cancel();
    both.removeEventListener('abort', giveUp);
    promise.catch(() => undefined);
  }
}

/** Waits for a promise until the signal aborts, then rejects. The work behind the promise continues. */
export function unlessAborted<Result>(promise: Promise<Result>, signal: AbortSignal | undefined): Promise<Result> {
  if (signal === undefined) return promise;
  return new Promise((resolve, reject) => {
    const giveUp = (): void => reject(abortReason(signal));
    signal.addEventListener('abort', giveUp, { once: true });
    // Attached even if the signal has already aborted: a failure of the continuing work must not end the process.
    promise.then(resolve, reject).finally(() => signal.removeEventListener('abort', giveUp));
    if (signal.aborted) giveUp();
  });
}

/** The reason of an aborted signal, as an error. */
export function abortReason(signal: AbortSignal): Error {
  return signal.reason instanceof Error ? signal.reason : new Error(String(signal.reason));
}
