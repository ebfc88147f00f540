/** An attempt that ended without a response, or with a 408 that only ends an idle connection. */
export interface FailedAttempt {
  /**
   * `refused`: the replica had not begun to process it (HTTP/2). `lost`: the connection broke after a part was sent.
   */
  readonly how: 'unreached' | 'refused' | 'lost';
  /** The connection had served requests before, so the replica may have closed it while it was idle. */
  readonly wasReused: boolean;
}

/** The request that may be sent again. */
export interface RetriedRequest {
  readonly method: string;
  /** How often the balancer sent it, at least in part. Failed connects cost a replica nothing and do not count. */
  readonly timesSent: number;
  /** Whether the balancer still holds the whole body that it has read. */
  readonly isReplayable: boolean;
  /** The service declares that any of its requests may run twice. */
  readonly retryUnsafe: boolean;
}

/** `new-connection`: any replica, also the same one, over a new connection. `give-up`: answer the client. */
export type RetryDecision = 'another' | 'new-connection' | 'give-up';

/** The balancer sends one request at most this many times. */
export const maxTimesSent = 3;

/** The idempotent methods of RFC 9110, section 9.2.2, except TRACE, which the balancer refuses. */
const idempotentMethods: ReadonlySet<string> = new Set(['GET', 'HEAD', 'OPTIONS', 'PUT', 'DELETE']);

/** Whether running the request twice has the same effect as running it once. */
export function isIdempotent(method: string): boolean {
  return idempotentMethods.has(method);
}

/** Never resends a request that a replica may have begun to run, unless running it twice is harmless. Pure. */
export function decideRetry(failed: FailedAttempt, request: RetriedRequest): RetryDecision {
  if (!request.isReplayable) return 'give-up';
  if (failed.how === 'unreached') return 'another';
  if (request.timesSent >= maxTimesSent) return 'give-up';
  // The cause is usually a healthy replica that closes an old connection.
  if (failed.how === 'refused') return 'new-connection';
  if (!isIdempotent(request.method) && !request.retryUnsafe) return 'give-up';
  // Usually a race: a healthy replica closed the idle connection while the request was on its way.
  return failed.wasReused ? 'new-connection' : 'another';
}
