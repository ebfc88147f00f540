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
