import type { AttemptFailure } from '../access-log/access-record.ts';
import { faults } from '../http1/faults.ts';

/** Fixed label values: clients and replicas cannot make the metrics grow. Other values count for their class. */

/** Statuses with a series of their own, from RFC 9110 and its companions, that model services and web programs use. */
const knownStatuses = [
  101, 200, 201, 202, 204, 206, 301, 302, 303, 304, 307, 308, 400, 401, 402, 403, 404, 405, 406, 408, 409, 410, 411, 412, 413, 414, 415,
  416, 417, 421, 422, 424, 425, 426, 428, 429, 431, 451, 499, 500, 501, 502, 503, 504, 507, 529,
];

/** `none`: the client disconnected before it got a status. */
export const codeLabels: readonly string[] = ['none', '1xx', '2xx', '3xx', '4xx', '5xx', ...knownStatuses.map(String)];

const codeIndexes: Uint8Array = Uint8Array.from({ length: 600 }, (_, status) => {
  const known = codeLabels.indexOf(String(status));
  return known < 0 ? Math.floor(status / 100) : known;
});

/** The index in `codeLabels` for a status; 0 for an invalid one. */
export function codeIndexOf(status: number): number {
  return codeIndexes[status] ?? 0;
}

/** Failures after which a request may be retried. */
export const retryReasons = ['unreached', 'refused', 'idle_closed', 'lost', 'stalled'] as const satisfies readonly AttemptFailure[];
export type RetryReason = (typeof retryReasons)[number];

/** Why a connect to a replica failed. `local`: the balancer's machine is short of files, ports or memory. */
export const connectFailures = ['refused', 'timeout', 'local'] as const;
export type ConnectFailure = (typeof connectFailures)[number];

/** The operations that are refused when open files run short. */
export const refusedForFiles = ['client_connection', 'stream', 'replica_connection'] as const;
export type RefusedForFiles = (typeof refusedForFiles)[number];

/**
 * Why a client's connection was closed before its first request. `address`: it is not in `allow`. `proxy_header`: the
 * PROXY header of a proxy is missing or invalid.
 */
export const refusedConnections = ['address', 'proxy_header'] as const;
export type RefusedConnection = (typeof refusedConnections)[number];

/** The codes of `balancer-responses.ts` that are no message faults; a test keeps both equal. */
const ownReasons = [
  'request_timeout',
  'https_required',
  'unknown_host',
  'overloaded',
  'no_ready_replica',
  'queue_full',
  'queue_timeout',
  'replica_lost',
  'replica_broke_protocol',
  'first_byte_timeout',
  'replica_unresponsive',
  'not_an_event_stream',
  'internal_error',
];

/** `other`: a code that is in no list. */
export const rejectReasons: readonly string[] = ['other', ...Object.keys(faults), ...ownReasons];

const rejectIndexes: ReadonlyMap<string, number> = new Map(rejectReasons.map((reason, index) => [reason, index]));

/** The index in `rejectReasons` for the code of the balancer's own answer. */
export function rejectIndexOf(code: string): number {
  return rejectIndexes.get(code) ?? 0;
}
