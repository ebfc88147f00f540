import type { BalancerConfig } from '../../domain/balancer-link.ts';
import type { ExpectedReplica } from '../../domain/expected-replica.ts';
import { faults, type Fault } from '../http1/faults.ts';
import { isClientFault, type BalancerResponse } from '../http1/balancer-response.ts';
import type { QueueRefusal } from './request-queue.ts';

/**
 * All responses that the balancer writes itself. Messages name the next command, or for a client that waited the replica
 * to come. They contain no replica address.
 */

/** The request broke a rule. */
export function refusal(fault: Fault): BalancerResponse {
  return { status: faults[fault].status, code: fault, message: faults[fault].message };
}

/** The client was too slow with its head or its body. */
export const requestTimeout: BalancerResponse = { status: 408, code: 'request_timeout', message: 'The request did not arrive in time.' };

/** For a client that speaks no TLS. */
export const tlsRequiredText = 'This endpoint speaks TLS: use https.';

/** Plain HTTP at the port that leads to the endpoint: the same request belongs to `location`. */
export function httpsRequired(location: string): BalancerResponse {
  return { status: 308, code: 'https_required', message: tlsRequiredText, location };
}

/** The request is for a host that is no name of the endpoint. */
export const unknownHost: BalancerResponse = {
  status: 421,
  code: 'unknown_host',
  message: 'The certificate of this endpoint has no such name.',
};

/** The process already serves the maximum number of connections. */
export function overloaded(config: BalancerConfig): BalancerResponse {
  return { status: 503, code: 'overloaded', message: 'Too many connections are open.', retryAfter: config.retryAfterSeconds };
}

/** A client connection has as many open requests as its share of the open files allows. */
export function shareUsed(config: BalancerConfig): BalancerResponse {
  const message = 'This connection has its share of the requests that the limit of open files allows at once. Wait for a response first.';
  return { status: 503, code: 'overloaded', message, retryAfter: config.retryAfterSeconds };
}

/** A request waited in vain for a replica with fewer requests. */
export function replicasFull(config: BalancerConfig): BalancerResponse {
  const message = `Each replica of service ${config.service} has ${config.maxConnectionsPerReplica} requests (load_balancer.max_connections_per_replica).`;
  return { status: 503, code: 'overloaded', message, retryAfter: config.retryAfterSeconds };
}

/** What a client that waits learns about the replica to come; undefined without information. */
export interface ExpectedWait {
  /** A clause, such as `a replica is loading and should be ready in about 20 s`. Names no machine and no command. */
  readonly text: string;
  /** Undefined when the time is unknown or over. */
  readonly seconds: number | undefined;
}

/** Longest `Retry-After` from an expected time, s: a client should notice a replica that is ready early. */
const longestRetryAfter = 120;

const phaseTexts = {
  provisioning: 'a replica is being provisioned',
  starting: 'a replica is being started',
  loading: 'a replica is loading',
  waking: 'a replica is waking up',
} as const;

/** `now`: ms since the epoch. */
export function expectedWait(expected: ExpectedReplica | undefined, now: number): ExpectedWait | undefined {
  if (expected === undefined) return undefined;
  const { phase, readyAt = now } = expected;
  const phaseText = phaseTexts[phase];
  if (readyAt <= now) return { text: phaseText, seconds: undefined };
  const seconds = Math.ceil((readyAt - now) / 1_000);
  return { text: `${phaseText} and should be ready in about ${seconds} s`, seconds };
}

/** A message with what the client can expect. The public reads it, so it names no command of the service's owner. */
const withOutlook = (what: string, wait: ExpectedWait | undefined): string => (wait === undefined ? `${what}.` : `${what}: ${wait.text}.`);

const retryAfterOf = ({ retryAfterSeconds }: BalancerConfig, wait: ExpectedWait | undefined): number =>
  Math.min(longestRetryAfter, wait?.seconds ?? retryAfterSeconds);

/** No replica serves, or none could be reached. */
export function noReadyReplica(config: BalancerConfig, wait?: ExpectedWait): BalancerResponse {
  const message = withOutlook(`No replica of service ${config.service} is ready`, wait);
  return { status: 503, code: 'no_ready_replica', message, retryAfter: retryAfterOf(config, wait) };
}

/** `otherwise`: the response when no replica is expected. */
export function queueRefusalResponse(
  config: BalancerConfig,
  reason: QueueRefusal,
  otherwise: BalancerResponse,
  wait: ExpectedWait | undefined,
): BalancerResponse {
  if (reason === 'full') return queueFull(config, wait);
  if (reason === 'late') return queueTimeout(config, otherwise, wait);
  return otherwise.code === 'no_ready_replica' ? noReadyReplica(config, wait) : otherwise;
}

/** The request queue is full, by requests or by bytes. */
export function queueFull(config: BalancerConfig, wait: ExpectedWait | undefined): BalancerResponse {
  const message = withOutlook(`Too many requests wait for a replica of service ${config.service}`, wait);
  return { status: 503, code: 'queue_full', message, retryAfter: retryAfterOf(config, wait) };
}

/** 504 when a service that scales from zero had no replica in time; else `otherwise`. */
export function queueTimeout(config: BalancerConfig, otherwise: BalancerResponse, wait: ExpectedWait | undefined): BalancerResponse {
  if (otherwise.code !== 'no_ready_replica') return otherwise;
  if (!config.queue.fromZero) return noReadyReplica(config, wait);
  const seconds = config.queue.timeoutMs / 1_000;
  const what = `No replica of service ${config.service} was ready within ${seconds} s (load_balancer.queue_timeout_seconds)`;
  const message = withOutlook(what, wait);
  return { status: 504, code: 'queue_timeout', message, ...(wait !== undefined && { retryAfter: retryAfterOf(config, wait) }) };
}

/** The connection broke after a replica got the request or part of it. The balancer does not send it again. */
export function replicaLost(config: BalancerConfig): BalancerResponse {
  const message = `A replica of service ${config.service} went away before it answered.`;
  return { status: 502, code: 'replica_lost', message };
}

/** The replica's response was not HTTP. */
export function replicaBrokeProtocol(config: BalancerConfig, fault: Fault): BalancerResponse {
  const message = `A replica of service ${config.service} sent a response that is not valid HTTP (${fault}).`;
  return { status: 502, code: 'replica_broke_protocol', message };
}

/** A replica got the whole request and did not begin to answer in time. */
export function firstByteTimeout(config: BalancerConfig): BalancerResponse {
  const seconds = config.firstByteTimeoutMs / 1_000;
  const message = `No replica of service ${config.service} began to answer within ${seconds} s (load_balancer.first_byte_timeout).`;
  return { status: 504, code: 'first_byte_timeout', message };
}

/** A hung or lost replica has the request or part of it. A resend could run it twice, or no other replica serves. */
export function replicaUnresponsive(config: BalancerConfig): BalancerResponse {
  const message = `A replica of service ${config.service} took the request and stopped answering; the request may have run.`;
  return { status: 504, code: 'replica_unresponsive', message };
}

/** A replica read the beginning of the request and then stopped reading. */
export function uploadTimeout(config: BalancerConfig): BalancerResponse {
  const seconds = config.idleTimeoutMs / 1_000;
  const message = `A replica of service ${config.service} took no more of the request for ${seconds} s (load_balancer.idle_timeout).`;
  return { status: 504, code: 'first_byte_timeout', message };
}

/** The balancer's code threw an unexpected error. */
export const internalError: BalancerResponse = {
  status: 500,
  code: 'internal_error',
  message: 'Something unexpected happened in the balancer.',
};

/** A client has the status 200 and comments, and the replica's response cannot follow them. */
export function unfitAfterComments(status: number): BalancerResponse {
  const message = `The replica answered with status ${status} and not with a plain event stream.`;
  return { status, code: 'not_an_event_stream', message };
}

/** The balancer's answer to a client that reads an event stream. */
export function errorEvent({ status, code, message }: BalancerResponse): Buffer {
  const type = isClientFault(status) ? 'invalid_request_error' : 'server_error';
  return Buffer.from(`event: error\ndata: ${JSON.stringify({ error: { message, type, code, status } })}\n\n`);
}

/** Reports a break to the reader of an event stream. Without it, the broken stream can look complete. */
export const brokenEventStream: Buffer = Buffer.from(
  `event: error\ndata: ${JSON.stringify({
    error: { message: 'The replica ended the stream before its end.', type: 'server_error', code: 'replica_lost' },
  })}\n\n`,
);
