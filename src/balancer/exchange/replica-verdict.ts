import type { DialError } from '../../shared/dial.ts';
import type { BalancerContext, SuspectReason } from './balancer-context.ts';
import { retryAfterSeconds, type ResponseHead } from '../http1/response-head.ts';
import type { Replica } from '../replicas/replica.ts';

/** An attempt failed in a way that speaks against the replica. */
export function noteFailure(context: BalancerContext, replica: Replica, wasRefused: boolean): void {
  if (context.replicas.noteFailure(replica, wasRefused)) context.metrics.ejected(replica.slot);
}

/** An attempt failed through the replica's fault: it may go out of rotation, and the reconciler is told to look. */
export function blame(context: BalancerContext, replica: Replica, reason: SuspectReason): void {
  noteFailure(context, replica, reason === 'refused');
  context.suspect(replica.id, reason);
}

/** Our own shortage of files, ports or memory: says nothing about the replica. */
const ownShortages: ReadonlySet<string> = new Set(['EMFILE', 'ENFILE', 'EADDRNOTAVAIL', 'ENOBUFS', 'ENOMEM']);

/** The replica was not reached. */
export function blameForDial(context: BalancerContext, replica: Replica, error: DialError | undefined): void {
  if (error !== undefined && ownShortages.has(error.code)) {
    context.metrics.connectFailed('local');
    return;
  }
  const reason = error?.code === 'ETIMEDOUT' ? 'timeout' : 'refused';
  context.metrics.connectFailed(reason);
  blame(context, replica, reason);
}

/** What the status of a response says about the replica's health. */
export function judgeStatus(context: BalancerContext, replica: Replica, head: ResponseHead): void {
  const { status } = head;
  const pauseSeconds = status === 429 || status === 503 ? retryAfterSeconds(head) : undefined;
  if (pauseSeconds !== undefined) context.replicas.steerAway(replica, pauseSeconds * 1_000);
  else if (status >= 500) noteFailure(context, replica, false);
  else replica.health.noteSuccess();
}
