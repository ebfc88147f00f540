import { isAlive, type aliveStates, type ReplicaState } from './replica-state.ts';

/** What planning needs to know of a replica. */
export interface PlannedReplica {
  readonly id: number;
  readonly version: number;
  readonly state: ReplicaState;
}

/** One thing to do; decisions are plain lists of these. */
export type Action = { readonly type: 'launch' } | { readonly type: 'stop'; readonly replicaId: number };

/**
 * What would bring a service from what is observed to `target` living replicas. It does nothing itself. Victims are chosen least useful
 * first: by state (what serves least is cheapest to lose), then lower version, then higher id, as SkyServe does.
 */
export function planReplicas(observed: readonly PlannedReplica[], target: number): readonly Action[] {
  const living = observed.filter((replica) => isAlive(replica.state));
  const missing = target - living.length;
  if (missing >= 0) return Array.from({ length: missing }, () => ({ type: 'launch' }) as const);
  return living
    .toSorted((a, b) => usefulness(a.state) - usefulness(b.state) || a.version - b.version || b.id - a.id)
    .slice(0, -missing)
    .map((replica) => ({ type: 'stop', replicaId: replica.id }) as const);
}

const order: readonly ReplicaState[] = [
  'PENDING',
  'PROVISIONING',
  'STARTING',
  'NOT_READY',
  'READY',
] satisfies (typeof aliveStates)[number][];
const usefulness = (state: ReplicaState): number => order.indexOf(state);
