import { sleepPath, wakePath } from '../../domain/replica/sleep.ts';
import type { ReplicaEnd } from '../../domain/replica/replica-report.ts';
import type { ServiceSpec } from '../../domain/task.ts';
import type { ReplicaAddress } from '../../shared/replica-address.ts';
import { abortReason, unlessAborted } from '../../shared/deadline.ts';
import type { BalancerView } from './balancer-client.ts';
import type { ProbeAnswer } from './probe-request.ts';
import { drainReplica } from './replica-end.ts';
import type { ReplicaHandle } from './replica-handle.ts';
import type { ServiceContext } from './service-context.ts';

/** Pause before the engine is asked again after it did not answer, ms. */
const retryMs = 1_000;

/**
 * Puts the engine of a replica to sleep once the balancer has no request of it. An engine that refuses is no reason to
 * keep the machine: then this returns the replica's end. Otherwise it rejects when the signal aborts.
 */
export async function putToSleep(
  context: ServiceContext,
  handle: ReplicaHandle,
  view: () => BalancerView,
  signal: AbortSignal,
): Promise<ReplicaEnd> {
  // What the probes said before must not make it serve when it wakes up.
  context.reports.report(handle.id, { probe: 'unknown' });
  await drainReplica(context, handle, view, signal);
  while (!signal.aborted) {
    const { address } = handle.record;
    const answer = address === null ? undefined : await context.tellEngine(address, sleepPath, signal);
    if (answer?.passed === true) await unlessAborted(new Promise<never>(() => undefined), signal);
    if (answer?.isRefusal === true && !signal.aborted) {
      const hint = 'vLLM needs --enable-sleep-mode and VLLM_SERVER_DEV_MODE=1';
      return { cause: 'scale-down', reason: `The service needs no replica, and its engine cannot sleep: ${answer.detail} (${hint}).` };
    }
    await context.clock.sleep(retryMs, signal);
  }
  throw abortReason(signal);
}

/**
 * Wakes the engine of a replica that may sleep, before its first probe: an engine may pass probes while it sleeps.
 * Undefined: it is awake. An answer that counts as a failed probe otherwise.
 */
export async function wakeEngine(
  context: ServiceContext,
  address: ReplicaAddress,
  { replicaPolicy }: ServiceSpec,
  signal: AbortSignal,
): Promise<ProbeAnswer | undefined> {
  if (replicaPolicy.scaleToZero !== 'sleep') return undefined;
  const answer = await context.tellEngine(address, wakePath, signal);
  return answer.passed ? undefined : answer;
}
