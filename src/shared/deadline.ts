import type { Clock } from './clock.ts';

/** The reason of a controller that ends a pause early. Without a reason, Node makes an error with a stack for each. */
export const ended = Symbol('ended');

/** A controller that aborts with another signal too, until `unlink`. */
interface LinkedController {
  readonly controller: AbortController;
  readonly unlink: () => void;
}

/** For short work under a long signal: `AbortSignal.any` costs ten times as much, and its signals wait for the collector. */
export function linkedController(signal: AbortSignal | undefined): LinkedController {
  const controller = new AbortController();
  if (signal === undefined) return { controller, unlink: () => undefined };
  const follow = (): void => controller.abort(signal.reason);
  if (signal.aborted) follow();
  else signal.addEventListener('abort', follow, { once: true });
  return { controller, unlink: () => signal.removeEventListener('abort', follow) };
}

/** Runs work with a promise that settles after `ms`: the work leaves out later answers. Throws the signal's reason. */
export async function withLateness<Result>(
  clock: Clock,
  ms: number,
  work: (late: Promise<undefined>) => Promise<Result>,
  signal?: AbortSignal,
): Promise<Result> {
  const { controller: over, unlink } = linkedController(signal);
  const late = clock.sleep(ms, over.signal).then(() => undefined);
  try {
    return await work(late);
  } finally {
    unlink();
    over.abort(ended);
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
  const { controller: over, unlink } = linkedController(signal);
  const both = over.signal;
  const { promise, reject } = Promise.withResolvers<never>();
  const giveUp = (): void => reject(signal?.aborted === true ? signal.reason : tooLong());
  both.addEventListener('abort', giveUp, { once: true });
  if (both.aborted) giveUp();
  const cancel = clock.after(ms, () => over.abort());
  try {
    return await Promise.race([work(both), promise]);
  } finally {
    cancel();
    unlink();
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
