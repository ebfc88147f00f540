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
  let longest = -1;
  let equals = 0;
  for (let index = 0; index < candidates.length; index += 1) {
    const candidate = candidates[index];
    if (candidate === undefined) continue;
    const cost = costOf(candidate);
    if (cost > lowest) continue;
    const since = candidate.sinceChoice;
    if (cost === lowest && since < longest) continue;
    equals = cost < lowest || since > longest ? 1 : equals + 1;
    lowest = cost;
    longest = since;
    if (equals === 1 || random() * equals < 1) best = index;
  }
  return best;
}
