import type { UpdatePolicy, ReplicaPolicy } from '../task.ts';
import { surgeOf } from '../rollout.ts';
import type { ReplicaState } from './replica-state.ts';

/** A replica whose provider recommends to move it, because its machine may be reclaimed soon. */
export interface RecommendedReplica {
  readonly id: number;
  readonly state: ReplicaState;
}

/**
 * The replicas that are replaced now because of recommendations, oldest first: as many as the service may have beside
 * the `desired` ones. One that is not ready yet has nothing to save.
 */
export function replicasToMove<Replica extends RecommendedReplica>(
  recommended: readonly Replica[],
  desired: number,
  { policy, update }: { readonly policy: ReplicaPolicy; readonly update: UpdatePolicy },
): readonly Replica[] {
  const room = policy.maxReplicas + policy.numOverprovision + surgeOf(update, desired) - desired;
  return recommended.filter(isServing).slice(0, Math.max(0, room));
}

/** The moved replicas that drain now: those beyond the `desired` ready replicas. `readyOthers`: ready replicas beside them. */
export function movedToDrain(moved: readonly RecommendedReplica[], readyOthers: number, desired: number): readonly number[] {
  const ready = moved.filter(({ state }) => state === 'READY');
  const waiting = readyOthers >= desired ? moved.filter(({ state }) => state !== 'READY') : [];
  return [...waiting, ...ready.slice(0, Math.max(0, readyOthers + ready.length - desired))].map(({ id }) => id);
}

const isServing = ({ state }: RecommendedReplica): boolean => state === 'READY' || state === 'NOT_READY';
