import { failureOf } from './errors.ts';

/** Runs calls to AWS and turns what goes wrong into errors that callers know, with what was being done, as in `list machines in us-east-1`. */
export async function guard<T>(doing: string, signal: AbortSignal | undefined, call: () => Promise<T>): Promise<T> {
  signal?.throwIfAborted();
  try {
    return await call();
  } catch (error) {
    // The SDK has its own error for what was cancelled.
    signal?.throwIfAborted();
    throw failureOf(error, doing);
  }
}
