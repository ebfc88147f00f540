import type { LoadBalancingPolicy } from '../../domain/task.ts';
import { createInstanceAwareLeastLoad } from './instance-aware-least-load.ts';
import { createLeastLoad } from './least-load.ts';
import type { Policy } from './policy.ts';
import { createRoundRobin } from './round-robin.ts';

const factories: Readonly<Record<LoadBalancingPolicy, () => Policy>> = {
  least_load: createLeastLoad,
  round_robin: createRoundRobin,
  instance_aware_least_load: createInstanceAwareLeastLoad,
};

/** The policy of that name. */
export function createPolicy(name: LoadBalancingPolicy): Policy {
  return factories[name]();
}
