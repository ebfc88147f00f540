// TEMPORARY
import { decideTarget, initialAutoscaler, rateWindowMs } from '../domain/autoscale.ts';
import type { ReplicaPolicy } from '../domain/task.ts';
import type { ScalerKind } from './scale-world.ts';
/** temp */
export function policyScaler(name: string, policy: ReplicaPolicy): ScalerKind {
  return {
    name,
    start(_trace, replicas) {
      let memory = { ...initialAutoscaler(policy), target: replicas };
      return {
        everySeconds: 20,
        decide({ second, arrived }) {
          const requestsInWindow = arrived(second - rateWindowMs / 1_000, second);
          memory = decideTarget(memory, policy, { requestsInWindow, busy: 0, fleet: { living: [], toCome: 1 } });
          return memory.target;
        },
      };
    },
  };
}
