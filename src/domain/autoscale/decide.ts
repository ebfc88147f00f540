import type { ReplicaPolicy } from '../task.ts';
import { adoptWanted, type AutoscalerMemory } from './hysteresis.ts';
import { wantedByCapacity } from './instance-aware.ts';
import type { ServiceLoad } from './load.ts';
import { wantedByRate } from './request-rate.ts';

/** The ways to say how many replicas a load asks for, before the bounds of the policy. Each is a small pure function. */
const rules = {
  fixed: (policy: ReplicaPolicy) => policy.minReplicas,
  requestRate: (policy: ReplicaPolicy, load: ServiceLoad) =>
    typeof policy.targetQpsPerReplica === 'number' ? wantedByRate(policy.targetQpsPerReplica, load) : policy.minReplicas,
  instanceAware: (_policy: ReplicaPolicy, load: ServiceLoad) => wantedByCapacity(load),
} as const;

function ruleOf({ targetQpsPerReplica }: ReplicaPolicy): keyof typeof rules {
  if (targetQpsPerReplica === undefined) return 'fixed';
  return typeof targetQpsPerReplica === 'number' ? 'requestRate' : 'instanceAware';
}

/** Replicas that the load asks for at this moment, within the bounds: at least one while a request waits or is under way. */
export function wantedReplicas(policy: ReplicaPolicy, load: ServiceLoad): number {
  const wanted = rules[ruleOf(policy)](policy, load);
  const atLeast = Math.max(policy.minReplicas, load.busy > 0 ? 1 : 0);
  return Math.min(policy.maxReplicas, Math.max(atLeast, wanted));
}

/** One decision: what the load asks for now, adopted when it was asked for long enough. */
export function decideTarget(memory: AutoscalerMemory, policy: ReplicaPolicy, load: ServiceLoad): AutoscalerMemory {
  return adoptWanted(memory, policy, wantedReplicas(policy, load));
}
