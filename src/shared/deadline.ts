import type { Clock } from './clock.ts';

/**
 * The result of work that may take so long, ms. When it takes longer, its signal aborts and the error of `tooLong` is thrown at once, whether
 * the work heeds its signal or not.
 */
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
