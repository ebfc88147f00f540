import type { Draft } from '../decision.ts';
import { countReplicas, keepOrder } from '../plan.ts';
import type { ReplicaRecord } from '../records.ts';
import type { ReplicaPolicy } from '../task.ts';

/** vLLM's calls (docs.vllm.ai "Sleep Mode"). Level 1 keeps the weights in main memory. Repeating a call does nothing. */
export const sleepPath = '/sleep?level=1';
export const wakePath = '/wake_up';

/**
 * Lets one replica sleep while the service needs none, if its file allows that: the one that sleeps already, otherwise
 * the most useful ready one of the service's version. Wakes every sleeping one when the service needs a replica. Returns
 * the id of the replica that sleeps, which is no surplus.
 */
export function sleepOrWake(
  draft: Draft,
  serving: readonly ReplicaRecord[],
  { policy, desired }: { readonly policy: Pick<ReplicaPolicy, 'scaleToZero'>; readonly desired: number },
): number | undefined {
  if (desired > 0) {
    const reason = `The service is to have ${countReplicas(desired)}.`;
    for (const replica of serving) if (replica.state === 'SLEEPING') draft.wakeUp(replica, reason);
    return undefined;
  }
  if (policy.scaleToZero !== 'sleep') return undefined;
  const current = serving.filter(({ version }) => version === draft.service.version);
  const sleeper = current.find(({ state }) => state === 'SLEEPING') ?? keepOrder(current).find(({ state }) => state === 'READY');
  if (sleeper !== undefined) draft.sleep(sleeper);
  return sleeper?.id;
}
