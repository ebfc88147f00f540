import { connectFailures, refusedConnections, refusedForFiles, retryReasons } from './label-values.ts';

/**
 * For whole requests, s: from a quick answer's share in the balancer to ten minutes of generated text. About three per
 * decade, more where the first token of a language model usually comes.
 */
export const durationBounds: readonly number[] = [
  0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600,
];

/** For the delay of an event loop, s. */
export const delayBounds: readonly number[] = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5];

/** The index of the first bound that is not below the value (`le`), or `bounds.length`. Pure. */
export function bucketOf(value: number, bounds: readonly number[]): number {
  let index = 0;
  while (index < bounds.length && value > (bounds[index] ?? 0)) index += 1;
  return index;
}

/** Labels that a sample can have. */
export type LabelName = 'code' | 'replica' | 'place' | 'reason' | 'kind' | 'thread' | 'service' | 'version' | 'node_version';

/** A group of samples that are one measurement. */
export interface MetricFamily {
  /** Without the endings that the format adds to samples (`_total`, `_bucket`, `_sum`, `_count`). */
  readonly name: string;
  /** A `summary` has only a count and a sum: enough for a mean. */
  readonly type: 'counter' | 'gauge' | 'histogram' | 'summary';
  /** One sentence; units are in the name. */
  readonly help: string;
  readonly labels: readonly LabelName[];
  /** Upper bounds of a histogram's buckets, without the infinite one. */
  readonly bounds?: readonly number[];
  /** Label values shown from the start, as 0: a rate then includes their first event. Others appear once not 0. */
  readonly initial?: readonly string[];
}

const own = (
  name: string,
  type: MetricFamily['type'],
  help: string,
  labels: readonly LabelName[] = [],
  more: Pick<MetricFamily, 'bounds' | 'initial'> = {},
): MetricFamily => ({ name: `svc_balancer_${name}`, type, help, labels, ...more });

const ofProcess = (name: string, type: MetricFamily['type'], help: string): MetricFamily => ({
  name: `process_${name}`,
  type,
  help,
  labels: [],
});

/** All metrics of the balancer, in the order of exposition. docs/reference/metrics.md is generated from it. */
export const metricTable = {
  requests: own('requests', 'counter', 'Requests that ended, by the status that the client received and the replica of the last attempt.', [
    'code',
    'replica',
  ]),
  inFlight: own('requests_in_flight', 'gauge', 'Attempts under way at each replica.', ['replica']),
  duration: own(
    'request_duration_seconds',
    'histogram',
    'From the arrival of a request to the end of its response; WebSocket sessions are left out.',
    [],
    { bounds: durationBounds },
  ),
  firstByte: own(
    'time_to_first_byte_seconds',
    'histogram',
    'From the arrival of a request to the first byte of the replica that answered it.',
    [],
    {
      bounds: durationBounds,
    },
  ),
  replicaFirstByte: own(
    'replica_time_to_first_byte_seconds',
    'summary',
    'The same for each replica, without what was spent on earlier attempts and on waiting.',
    ['replica'],
  ),
  queueLength: own('queue_length', 'gauge', 'Requests that wait for a replica.'),
  queueBytes: own('queue_bytes', 'gauge', 'Bodies held for the requests that wait.'),
  queueWait: own('queue_wait_seconds', 'histogram', 'How long requests waited for a replica, of those that had to.', [], {
    bounds: durationBounds,
  }),
  attempts: own('attempts', 'counter', 'Times that a replica was chosen for a request; more than the requests when some were tried again.'),
  retries: own('retries', 'counter', 'Attempts that failed and were followed by another one, by why they failed.', ['reason'], {
    initial: retryReasons,
  }),
  connectFailures: own('connect_failures', 'counter', 'Connections to replicas that could not be made, by why.', ['reason'], {
    initial: connectFailures,
  }),
  refusedForFiles: own(
    'refused_for_open_files',
    'counter',
    'Connections and requests that were refused because the limit of open files (`process_max_fds`) leaves no room for them, by what they are.',
    ['kind'],
    { initial: refusedForFiles },
  ),
  ejections: own('ejections', 'counter', 'Times that a replica was ejected for failing requests.', ['replica']),
  rejected: own('rejected_requests', 'counter', 'Requests that the balancer answered itself, by their `x-svc-reason`.', ['reason']),
  clientGone: own('client_gone', 'counter', 'Requests whose client left before the end of its response.'),
  truncated: own('truncated_responses', 'counter', 'Responses that a replica broke off after part of them was passed on.'),
  received: own('received_bytes', 'counter', 'Bodies of requests, without framing.'),
  sent: own('sent_bytes', 'counter', 'Bodies of responses, without framing.'),
  clientConnections: own('client_connections', 'gauge', 'Open connections of clients.'),
  clientConnectionsOpened: own('client_connections_opened', 'counter', 'Connections that clients opened.'),
  refusedConnections: own(
    'refused_connections',
    'counter',
    'Connections of clients that were closed before a request, by why: its `address` is not in `load_balancer.allow`, or its `proxy_header` is missing or invalid.',
    ['reason'],
    {
      initial: refusedConnections,
    },
  ),
  replicaConnections: own('replica_connections', 'gauge', 'Open connections to replicas, idle ones included.'),
  replicaConnectionsOpened: own('replica_connections_opened', 'counter', 'Connections that were opened to replicas.'),
  tlsHandshakes: own('tls_handshakes', 'counter', 'TLS handshakes of clients that succeeded.'),
  tlsFailures: own('tls_handshake_failures', 'counter', 'TLS handshakes of clients that failed.'),
  logLinesLost: own('access_log_lines_lost', 'counter', 'Lines of the access log that were dropped because the disk was full or too slow.'),
  replicaInfo: own('replica_info', 'gauge', 'Always 1: the location of each replica in the metrics.', ['replica', 'place']),
  threads: own('threads', 'gauge', 'Threads that serve the endpoint.'),
  threadDelay: own(
    'event_loop_delay_seconds',
    'histogram',
    'How late timers of a thread fire: how long its requests wait for their turn.',
    ['thread'],
    {
      bounds: delayBounds,
    },
  ),
  threadBusy: own('event_loop_busy_seconds', 'counter', 'Time in which the event loop of a thread was not idle.', ['thread']),
  threadCpu: own('thread_cpu_seconds', 'counter', 'CPU time of a thread.', ['thread']),
  buildInfo: own('build_info', 'gauge', 'Always 1: which service this is the endpoint of, and which program it is.', [
    'service',
    'version',
    'node_version',
  ]),
  processCpu: ofProcess('cpu_seconds', 'counter', 'CPU time of the process, user and system.'),
  processMemory: ofProcess('resident_memory_bytes', 'gauge', 'Memory of the process.'),
  processOpenFiles: ofProcess('open_fds', 'gauge', 'Open file descriptors.'),
  processMaxFiles: ofProcess('max_fds', 'gauge', 'The limit of open file descriptors.'),
  processStart: ofProcess('start_time_seconds', 'gauge', 'When the process started, in seconds since the epoch.'),
} as const satisfies Record<string, MetricFamily>;

/** The key of a family in the table. */
export type MetricKey = keyof typeof metricTable;
