import type { SuspectReason } from '../../domain/balancer-link.ts';
import type { DialError } from '../../shared/system/dial.ts';
import { countWaits, type Attempt } from './attempts.ts';
import type { BalancerContext } from './balancer-context.ts';
import type { Trailers } from '../http1/chunked-decoder.ts';
import { isGrpc, lacksGrpcStatus } from '../http1/grpc-request.ts';
import type { RequestHead } from '../http1/request-head.ts';
import { retryAfterSeconds, type ResponseHead } from '../http1/response-head.ts';
import { isOwnShortage, notBegun } from '../replicas/dial-queue.ts';
import type { Replica } from '../replicas/replica.ts';

function recordFailure(context: BalancerContext, replica: Replica, wasRefused: boolean): void {
  if (context.replicas.recordFailure(replica, wasRefused)) context.metrics.ejected(replica.slot);
}

/** Judges the replica by a failed connect. */
export function judgeDialError(context: BalancerContext, attempt: Attempt, error: DialError | undefined): void {
  const { replica } = attempt;
  if (error?.code === notBegun) return;
  if (isOwnShortage(error)) {
    context.metrics.connectFailed('local');
    return;
  }
  const reason = error?.code === 'ETIMEDOUT' ? 'timeout' : 'refused';
  context.metrics.connectFailed(reason);
  recordFailure(context, replica, reason === 'refused');
  countError(context, attempt);
  context.suspect(replica.id, reason);
}

/** Whether the replica closes an idle connection by a 408. The request may be sent again (RFC 9110, section 15.5.9). */
export function isEndOfIdle({ stream }: Attempt, { status, isPersistent }: ResponseHead): boolean {
  return status === 408 && !isPersistent && stream?.isReused === true;
}

/**
 * Judges the replica by the head of its response. A good head is not yet a success: the body may break off. `ms`: from
 * the sending of the request.
 */
export function judgeHead(context: BalancerContext, attempt: Attempt, head: ResponseHead, ms: number): void {
  const { status } = head;
  const { replica } = attempt;
  const pauseSeconds = status === 429 || status === 503 ? retryAfterSeconds(head) : undefined;
  attempt.verdict = pauseSeconds !== undefined ? 'busy' : status >= 500 ? 'failed' : 'good';
  replica.health.recordHead();
  countWaits(context, attempt, ms);
  if (context.replicas.hasVersions) context.metrics.replied(replica.slot, ms);
  if (status >= 500) countError(context, attempt);
  if (pauseSeconds !== undefined) context.replicas.avoid(replica, pauseSeconds * 1_000);
  else if (status >= 500) recordFailure(context, replica, false);
  // The 101 itself is the success: the connection may last for days, and any end of it is a proper end.
  else if (head.isTunnel) replica.health.recordSuccess();
}

/** The response came to its end: a success, unless it is a gRPC response without its status. */
export function judgeEnd(context: BalancerContext, attempt: Attempt, request: RequestHead, head: ResponseHead, trailers: Trailers): void {
  if (attempt.verdict !== 'good') return attempt.replica.health.recordComplete();
  if (!(isGrpc(request) && lacksGrpcStatus(head, trailers))) return attempt.replica.health.recordSuccess();
  recordFailure(context, attempt.replica, false);
  return countError(context, attempt);
}

/** Counts a failed attempt, unless `judgeHead` already did. With a `reason`, the reconciler probes the replica. */
export function judgeFailure(context: BalancerContext, attempt: Attempt, reason: SuspectReason | undefined): void {
  const { replica, verdict } = attempt;
  countError(context, attempt);
  replica.health.recordBroken(context.deadlines.machineNow, reason === 'timeout' && verdict === undefined ? 'hung' : 'cutOff');
  if (verdict !== 'failed') recordFailure(context, replica, false);
  if (reason !== undefined) context.suspect(replica.id, reason);
}

/** Counts an attempt that leaves a replica without a first byte. The replica may be busy, so this ejects nothing. */
export function judgeStalled(context: BalancerContext, attempt: Attempt): void {
  countError(context, attempt);
  attempt.replica.health.recordBroken(context.deadlines.machineNow, 'hung');
}

/** Counts the attempt as an error of the replica's version; later calls do nothing. */
function countError({ metrics, replicas }: BalancerContext, attempt: Attempt): void {
  if (attempt.hasErred || !replicas.hasVersions) return;
  attempt.hasErred = true;
  metrics.erred(attempt.replica.slot, attempt.verdict !== undefined);
}
