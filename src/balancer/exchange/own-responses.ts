import type { BalancerConfig } from '../../domain/balancer-link.ts';
import { faults, type Fault } from '../http1/faults.ts';
import type { OwnResponse } from '../http1/own-response.ts';
import type { QueueRefusal } from './waiting-room.ts';

/** Everything that the balancer answers itself. Messages say what a user can do; none names a replica's address. */

/** The request broke a rule. */
export function refusal(fault: Fault): OwnResponse {
  return { status: faults[fault].status, code: fault, message: faults[fault].message };
}

/** The client was too slow with its head or its body. */
export const requestTimeout: OwnResponse = { status: 408, code: 'request_timeout', message: 'The request did not arrive in time.' };

/** The process serves as many connections as it can. */
export function overloaded(config: BalancerConfig): OwnResponse {
  return { status: 503, code: 'overloaded', message: 'Too many connections are open.', retryAfter: config.retryAfterSeconds };
}

/** No replica serves, or none could be reached. */
export function noReadyReplica(config: BalancerConfig): OwnResponse {
  const message = `No replica of service ${config.service} is ready. Run: svc serve status ${config.service}`;
  return { status: 503, code: 'no_ready_replica', message, retryAfter: config.retryAfterSeconds };
}

/** A request cannot wait for a replica. `otherwise`: the answer when there is no hope of one. */
export function notQueued(config: BalancerConfig, why: QueueRefusal, otherwise: OwnResponse): OwnResponse {
  if (why === 'full') return queueFull(config);
  return why === 'late' ? waitedInVain(config, otherwise) : otherwise;
}

/** More requests wait for a replica than may, or larger ones. */
export function queueFull(config: BalancerConfig): OwnResponse {
  const message = `Too many requests wait for a replica of service ${config.service}. Run: svc serve status ${config.service}`;
  return { status: 503, code: 'queue_full', message, retryAfter: config.retryAfterSeconds };
}

/** The request waited for a replica for as long as it may. A service that wakes up for requests is slow; any other has none. */
export function waitedInVain(config: BalancerConfig, otherwise: OwnResponse): OwnResponse {
  if (!config.queue.fromZero || otherwise.code !== 'no_ready_replica') return otherwise;
  const seconds = config.queue.timeoutMs / 1_000;
  const message = `No replica of service ${config.service} was ready within ${seconds} s (load_balancer.queue_timeout). Run: svc serve status ${config.service}`;
  return { status: 504, code: 'queue_timeout', message };
}

/** A replica took the request, or part of it, and went away; sending it again could run it twice. */
export function replicaLost(config: BalancerConfig): OwnResponse {
  const message = `A replica of service ${config.service} went away before it answered. Run: svc serve logs ${config.service} ID`;
  return { status: 502, code: 'replica_lost', message };
}

/** A replica's answer was not HTTP. */
export function replicaBrokeProtocol(config: BalancerConfig, fault: Fault): OwnResponse {
  const message = `A replica of service ${config.service} sent a response that is not valid HTTP (${fault}). Run: svc serve logs ${config.service} ID`;
  return { status: 502, code: 'replica_broke_protocol', message };
}

/** A replica took the request and gave no answer in time. */
export function firstByteTimeout(config: BalancerConfig): OwnResponse {
  const seconds = config.firstByteTimeoutMs / 1_000;
  const message = `No replica of service ${config.service} began to answer within ${seconds} s (load_balancer.first_byte_timeout).`;
  return { status: 504, code: 'first_byte_timeout', message };
}

/** A replica took the beginning of the request, and then no more of it. */
export function uploadTimeout(config: BalancerConfig): OwnResponse {
  const seconds = config.idleTimeoutMs / 1_000;
  const message = `A replica of service ${config.service} took no more of the request for ${seconds} s (load_balancer.idle_timeout).`;
  return { status: 504, code: 'first_byte_timeout', message };
}

/** A bug of ours met this request. */
export const internalError: OwnResponse = {
  status: 500,
  code: 'internal_error',
  message: 'Something unexpected happened in the balancer.',
};

/** Tells the reader of an event stream that it broke, since its end alone can look like the proper one. */
export const brokenEventStream: Buffer = Buffer.from(
  `event: error\ndata: ${JSON.stringify({
    error: { message: 'The replica ended the stream before its end.', type: 'server_error', code: 'replica_lost' },
  })}\n\n`,
);
