/** Waits, but no longer than until the signal aborts: then it rejects, and what was waited for goes on. */
export function unlessAborted<Result>(promise: Promise<Result>, signal: AbortSignal | undefined): Promise<Result> {
  if (signal === undefined) return promise;
  return new Promise((resolve, reject) => {
    const giveUp = (): void => reject(abortReason(signal));
    signal.addEventListener('abort', giveUp, { once: true });
    // Also when it is aborted already: a failure of what goes on must not end the process.
    promise.then(resolve, reject).finally(() => signal.removeEventListener('abort', giveUp));
    if (signal.aborted) giveUp();
  });
}

/** Why a signal was aborted, as an error. */
export function abortReason(signal: AbortSignal): Error {
  return signal.reason instanceof Error ? signal.reason : new Error(String(signal.reason));
}
