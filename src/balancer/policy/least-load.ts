import { pickLeastCost } from './least-cost.ts';
import type { Candidate, Policy } from './policy.ts';

const inFlightOf = (candidate: Candidate): number => candidate.inFlight;

/** The replica with the fewest requests in flight. */
export function createLeastLoad(): Policy {
  return { name: 'least_load', pick: (candidates, random) => pickLeastCost(candidates, inFlightOf, random) };
}
