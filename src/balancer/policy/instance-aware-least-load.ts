import { pickLeastCost } from './least-cost.ts';
import type { Candidate, Policy } from './policy.ts';

/** Counts the request that is about to be placed, so that among idle replicas the strongest is taken first. */
const relativeLoadOf = (candidate: Candidate): number => (candidate.inFlight + 1) / candidate.weight;

/** The replica with the fewest requests in flight for its capacity. */
export function createInstanceAwareLeastLoad(): Policy {
  return { name: 'instance_aware_least_load', pick: (candidates, random) => pickLeastCost(candidates, relativeLoadOf, random) };
}
