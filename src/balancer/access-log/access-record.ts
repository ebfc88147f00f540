/**
 * How a request ended. `ok`: the replica's response was relayed to its end. `refused`: the balancer answered 4xx itself. `unavailable`: it answered
 * 5xx itself. `truncated`: the replica failed in the middle of its response. `client_gone`: the client left first.
 */
export type RequestOutcome = 'ok' | 'refused' | 'unavailable' | 'truncated' | 'client_gone';

/** What the client speaks: HTTP/1.0 and 1.1, HTTP/2, or WebSocket after an upgrade. */
export type ClientProtocol = 'h1' | 'h2' | 'ws';

/**
 * Why an attempt failed. `unreached`: no connection. `refused`: the replica had not begun to work on it (HTTP/2). `idle_closed`: the replica closed
 * a connection that had been idle, which happens. `lost`: the connection broke. `stalled`: the replica was found to answer nobody, and was left.
 * `timeout`: it was silent for too long. `protocol`: what came back was not HTTP.
 */
export type AttemptFailure = 'unreached' | 'refused' | 'idle_closed' | 'lost' | 'stalled' | 'timeout' | 'protocol';

/** The replica of an attempt, as far as records go. */
export interface LoggedReplica {
  readonly id: number;
  /** Where its figures are; see `metrics/row-layout.ts`. */
  readonly slot: number;
  /** Where it runs, such as `local` or `aws/us-east-2`. */
  readonly place: string;
}

/** One attempt that came to nothing. */
export interface FailedTry {
  readonly replicaId: number;
  readonly why: AttemptFailure;
}

/** What the access log says of one request; filled in as the request goes on. Times are ms; phases count from its arrival. */
export interface AccessRecord {
  /** Wall time of the arrival. */
  at: number;
  /** Monotonic, of the arrival; only a base for the phases. */
  startedAt: number;
  requestId: string;
  /** Of the client's `traceparent`: 32 hex digits. */
  traceId: string | undefined;
  protocol: ClientProtocol;
  isTls: boolean;
  method: string;
  /** Without the query, which may hold secrets. */
  path: string;
  /** What the client was told; 0 when it left before. */
  status: number;
  outcome: RequestOutcome;
  /** Of an answer of the balancer itself. */
  code: string | undefined;
  /** What was wrong with the replica's response. */
  fault: string | undefined;
  /** Of the last attempt. */
  replica: LoggedReplica | undefined;
  attempts: number;
  /** The first of those that came to nothing; the replica of the last one may be among them. */
  failed: readonly FailedTry[];
  /** Why that replica was chosen. */
  reason: string | undefined;
  /** Requests that the replica had when it was chosen. */
  loadAtChoice: number;
  /** Waited for a replica, in all. */
  queuedMs: number;
  /** The last attempt had a connection. */
  sentMs: number | undefined;
  firstByteMs: number | undefined;
  totalMs: number;
  /** Of the bodies, without framing. */
  bytesIn: number;
  bytesOut: number;
}

const noFailures: readonly FailedTry[] = [];
/** A request that waits for long may try many replicas that cannot be reached. */
const maxFailures = 5;

/** A request that has just arrived. */
export function openRecord(at: number, startedAt: number): AccessRecord {
  return {
    at,
    startedAt,
    requestId: '',
    traceId: undefined,
    protocol: 'h1',
    isTls: false,
    method: '',
    path: '',
    status: 0,
    outcome: 'client_gone',
    code: undefined,
    fault: undefined,
    replica: undefined,
    attempts: 0,
    failed: noFailures,
    reason: undefined,
    loadAtChoice: 0,
    queuedMs: 0,
    sentMs: undefined,
    firstByteMs: undefined,
    totalMs: 0,
    bytesIn: 0,
    bytesOut: 0,
  };
}

/** Notes that the attempt under way came to nothing. */
export function noteFailedTry(record: AccessRecord, why: AttemptFailure): void {
  const { replica, failed } = record;
  if (replica !== undefined && failed.length < maxFailures) record.failed = [...failed, { replicaId: replica.id, why }];
}

/** A path without its query. */
export function withoutQuery(path: string): string {
  const query = path.indexOf('?');
  return query < 0 ? path : path.slice(0, query);
}
