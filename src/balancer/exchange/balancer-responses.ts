import type { BalancerConfig } from '../../domain/balancer-link.ts';
import { faults, type Fault } from '../http1/faults.ts';
import type { BalancerResponse } from '../http1/balancer-response.ts';
import type { QueueRefusal } from './request-queue.ts';

/** All responses that the balancer writes itself. Messages name the next command and contain no replica address. */

/** The request broke a rule. */
export function refusal(fault: Fault): BalancerResponse {
  return { status: faults[fault].status, code: fault, message: faults[fault].message };
}

/** The client was too slow with its head or its body. */
export const requestTimeout: BalancerResponse = { status: 408, code: 'request_timeout', message: 'The request did not arrive in time.' };

/** The process already serves the maximum number of connections. */
export function overloaded(config: BalancerConfig): BalancerResponse {
  return { status: 503, code: 'overloaded', message: 'Too many connections are open.', retryAfter: config.retryAfterSeconds };
}

/** A client connection has as many open requests as its share of the open files allows. */
export function shareUsed(config: BalancerConfig): BalancerResponse {
  const message = 'This connection has its share of the requests that the limit of open files allows at once. Wait for a response first.';
  return { status: 503, code: 'overloaded', message, retryAfter: config.retryAfterSeconds };
}

/** No replica serves, or none could be reached. */
export function noReadyReplica(config: BalancerConfig): BalancerResponse {
  const message = `No replica of service ${config.service} is ready. Run: svc serve status ${config.service}`;
  return { status: 503, code: 'no_ready_replica', message, retryAfter: config.retryAfterSeconds };
}

/** `otherwise`: the response when no replica is expected. */
export function queueRefusalResponse(config: BalancerConfig, reason: QueueRefusal, otherwise: BalancerResponse): BalancerResponse {
  if (reason === 'full') return queueFull(config);
  return reason === 'late' ? queueTimeout(config, otherwise) : otherwise;
}

/** The request queue is full, by requests or by bytes. */
export function queueFull(config: BalancerConfig): BalancerResponse {
  const message = `Too many requests wait for a replica of service ${config.service}. Run: svc serve status ${config.service}`;
  return { status: 503, code: 'queue_full', message, retryAfter: config.retryAfterSeconds };
}

/** 504 when a service that scales from zero had no replica in time; else `otherwise`. */
export function queueTimeout(config: BalancerConfig, otherwise: BalancerResponse): BalancerResponse {
  if (!config.queue.fromZero || otherwise.code !== 'no_ready_replica') return otherwise;
  const seconds = config.queue.timeoutMs / 1_000;
  const message = `No replica of service ${config.service} was ready within ${seconds} s (load_balancer.queue_timeout). Run: svc serve status ${config.service}`;
  return { status: 504, code: 'queue_timeout', message };
}

/** The connection broke after a replica got the request or part of it. The balancer does not send it again. */
export function replicaLost(config: BalancerConfig): BalancerResponse {
  const message = `A replica of service ${config.service} went away before it answered. Run: svc serve logs ${config.service} ID`;
  return { status: 502, code: 'replica_lost', message };
}

/** The replica's response was not HTTP. */
export function replicaBrokeProtocol(config: BalancerConfig, fault: Fault): BalancerResponse {
  const message = `A replica of service ${config.service} sent a response that is not valid HTTP (${fault}). Run: svc serve logs ${config.service} ID`;
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
  const message = `A replica of service ${config.service} took the request and stopped answering; the request may have run. Run: svc serve status ${config.service}`;
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

/** Reports a break to the reader of an event stream. Without it, the broken stream can look complete. */
export const brokenEventStream: Buffer = Buffer.from(
  `event: error\ndata: ${JSON.stringify({
    error: { message: 'The replica ended the stream before its end.', type: 'server_error', code: 'replica_lost' },
  })}\n\n`,
);
