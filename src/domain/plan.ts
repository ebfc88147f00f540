import { isAlive, type aliveStates, type ReplicaState } from './replica-state.ts';

/** What planning needs to know of a replica. */
export interface PlannedReplica {
  readonly id: number;
  readonly version: number;
  readonly state: ReplicaState;
  /** Requests per second that it can take, where replicas differ in that. */
  readonly qps?: number;
}

/** One thing to do; decisions are plain lists of these. */
export type Action = { readonly type: 'launch' } | { readonly type: 'stop'; readonly replicaId: number };

/**
 * What would bring a service from what is observed to `target` living replicas. It does nothing itself. Victims are chosen least useful
 * first: by state (what serves least is cheapest to lose), then lower version, then what takes less, then higher id, as SkyServe does.
 */
export function planReplicas(observed: readonly PlannedReplica[], target: number): readonly Action[] {
  const living = observed.filter((replica) => isAlive(replica.state));
  const missing = target - living.length;
  if (missing >= 0) return Array.from({ length: missing }, () => ({ type: 'launch' }) as const);
  return keepOrder(living)
    .slice(target)
    .toReversed()
    .map((replica) => ({ type: 'stop', replicaId: replica.id }) as const);
}

/** The living ones of what is observed, the most useful first: any number of them that is kept is taken from the front. */
export function keepOrder<Replica extends PlannedReplica>(observed: readonly Replica[]): readonly Replica[] {
  return observed
    .filter((replica) => isAlive(replica.state))
    .toSorted((a, b) => usefulness(b.state) - usefulness(a.state) || b.version - a.version || (b.qps ?? 0) - (a.qps ?? 0) || a.id - b.id);
}

const order: readonly ReplicaState[] = [
  'PENDING',
  'PROVISIONING',
  'STARTING',
  'NOT_READY',
  'READY',
] satisfies (typeof aliveStates)[number][];
const usefulness = (state: ReplicaState): number => order.indexOf(state);
