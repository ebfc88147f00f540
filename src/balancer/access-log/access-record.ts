/**
 * `refused`: the balancer answered 4xx, or 501 for an unknown transfer coding. `unavailable`: it answered another 5xx.
 * `truncated`: the response broke off after the client had part of it. `client_gone`: the client disconnected first.
 * `no_request`: the balancer closed a connection before it could read a request.
 */
type RequestOutcome = 'no_request' | 'ok' | 'refused' | 'unavailable' | 'truncated' | 'client_gone';

/** HTTP/1.0 and 1.1, HTTP/2, or WebSocket after an upgrade. */
type ClientProtocol = 'h1' | 'h2' | 'ws';

/**
 * Why an attempt failed. `unreached`: no connection. `refused`: the replica had not begun to process the request
 * (HTTP/2). `idle_closed`: the replica closed an idle connection, which is normal. `stalled`: the replica answers no
 * requests, so the balancer moved or failed the request. `timeout`: the replica was silent for too long.
 */
export type AttemptFailure = 'unreached' | 'refused' | 'idle_closed' | 'lost' | 'stalled' | 'timeout' | 'protocol';

interface LoggedReplica {
  readonly id: number;
  /** Its slot in the memory of the metrics; see `metrics/row-layout.ts`. */
  readonly slot: number;
  /** Such as `local` or `aws/us-east-2`. */
  readonly location: string;
}

/** One failed attempt. */
export interface FailedTry {
  readonly replicaId: number;
  readonly why: AttemptFailure;
}

/** The access log's record of one request. Times are ms; `sentMs`, `firstByteMs`, `totalMs` count from the arrival. */
export interface AccessRecord {
  /** Wall time of the arrival. */
  at: number;
  /** Monotonic time of the arrival. */
  startedAt: number;
  requestId: string;
  /** From the client's `traceparent`: 32 hex digits. */
  traceId: string | undefined;
  protocol: ClientProtocol;
  isTls: boolean;
  /** The client's address; undefined unless the service asks for it. */
  client: string | undefined;
  method: string;
  /** Without the query, which may hold secrets. */
  path: string;
  /** 0 when the client disconnected before a status was sent. */
  status: number;
  outcome: RequestOutcome;
  /** The code of the balancer's own answer; undefined for a replica's response. */
  code: string | undefined;
  /** The HTTP rule that the replica's response broke, or the TLS error of a failed handshake. */
  fault: string | undefined;
  /** The replica of the last attempt. */
  replica: LoggedReplica | undefined;
  attempts: number;
  /** The first `maxFailures` failed attempts; the last attempt may be among them. */
  failed: readonly FailedTry[];
  reason: string | undefined;
  /** Requests that the replica had when the balancer chose it. */
  loadAtChoice: number;
  queuedMs: number;
  /** When the last attempt got a connection. */
  sentMs: number | undefined;
  firstByteMs: number | undefined;
  totalMs: number;
  /** Bytes of the bodies, without framing. */
  bytesIn: number;
  bytesOut: number;
}

const noFailures: readonly FailedTry[] = [];
/** A request that waits long in the queue may try many unreachable replicas. */
const maxFailures = 5;

/** Makes the record of a request that has just arrived. */
export function openRecord(at: number, startedAt: number): AccessRecord {
  return {
    at,
    startedAt,
    requestId: '',
    traceId: undefined,
    protocol: 'h1',
    isTls: false,
    client: undefined,
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

/** Records that the last attempt failed. */
export function recordFailedTry(record: AccessRecord, why: AttemptFailure): void {
  const { replica, failed } = record;
  if (replica !== undefined && failed.length < maxFailures) record.failed = [...failed, { replicaId: replica.id, why }];
}

/** Returns a path without its query. */
export function withoutQuery(path: string): string {
  const query = path.indexOf('?');
  return query < 0 ? path : path.slice(0, query);
}
