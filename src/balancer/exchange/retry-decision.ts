/** An attempt that ended without one byte of a response. */
export interface FailedAttempt {
  /**
   * `unreached`: no connection was made. `refused`: it was sent, and the replica says that it has not begun to work on it (HTTP/2 only).
   * `lost`: the request, or part of it, was sent and the connection broke.
   */
  readonly how: 'unreached' | 'refused' | 'lost';
  /** Whether the connection had served requests before, so that the replica may have closed it while it was idle. */
  readonly wasReused: boolean;
}

/** The request that may be sent again. */
export interface RetriedRequest {
  readonly method: string;
  /** How often it was sent so far, wholly or in part. Connects that failed cost a replica nothing and are not counted. */
  readonly timesSent: number;
  /** Whether all of the body that was read is still held. */
  readonly isReplayable: boolean;
  /** The service says that any of its requests may run twice. */
  readonly retryUnsafe: boolean;
}

/** What to do: try another replica; try any, the same one included, over a new connection; or tell the client. */
export type RetryDecision = 'elsewhere' | 'anew' | 'give-up';

/** How often one request is sent at most. */
export const maxTimesSent = 3;

/** RFC 9110, section 9.2.2. */
const idempotentMethods: ReadonlySet<string> = new Set(['GET', 'HEAD', 'OPTIONS', 'PUT', 'DELETE']);

/** Whether running the request twice is the same as running it once. */
export function isIdempotent(method: string): boolean {
  return idempotentMethods.has(method);
}

/** Never sends a request again that a replica may have begun to run, unless running it twice does no harm. Pure. */
export function decideRetry(failed: FailedAttempt, request: RetriedRequest): RetryDecision {
  if (!request.isReplayable) return 'give-up';
  if (failed.how === 'unreached') return 'elsewhere';
  if (request.timesSent >= maxTimesSent) return 'give-up';
  // The usual case is a replica that renews its connections.
  if (failed.how === 'refused') return 'anew';
  if (!isIdempotent(request.method) && !request.retryUnsafe) return 'give-up';
  // The usual case is the race between our request and the end of the replica's patience with an idle connection: nothing is wrong with it.
  return failed.wasReused ? 'anew' : 'elsewhere';
}
