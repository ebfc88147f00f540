import type { Random } from '../../shared/random.ts';
import type { Candidate } from './policy.ts';

/**
 * The index of the candidate with the lowest cost. Among equals it is the one that was taken longest ago, so that they take turns even when
 * requests come one at a time; among those never taken, each is as likely as the others. That is reservoir sampling with room for one
 * (Vitter, "Random Sampling with a Reservoir", 1985), which needs no list of the equals.
 */
export function pickLeastCost(candidates: readonly Candidate[], costOf: (candidate: Candidate) => number, random: Random): number {
  let best = 0;
  let lowest = Number.POSITIVE_INFINITY;
  let oldest = Number.POSITIVE_INFINITY;
  let equals = 0;
  for (let index = 0; index < candidates.length; index += 1) {
    const candidate = candidates[index];
    const cost = candidate === undefined ? Number.POSITIVE_INFINITY : costOf(candidate);
    const choice = candidate?.lastChoice ?? 0;
    if (cost > lowest || (cost === lowest && choice > oldest)) continue;
    equals = cost < lowest || choice < oldest ? 1 : equals + 1;
    lowest = cost;
    oldest = choice;
    if (equals === 1 || random() * equals < 1) best = index;
  }
  return best;
}
