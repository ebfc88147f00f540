import { aPlaceableOffer } from '../../test/support/builders.ts';
import type { Candidate, PlacementFacts, Refusal } from '../../src/domain/placement.ts';
import { rankCandidates } from '../../src/domain/placement/rank.ts';
import { rememberRefusal } from '../../src/domain/placement/refusals.ts';
import { seededRandom } from '../../src/shared/random.ts';

// Time to rank 5,000 offers with 200 remembered refusals, the maximum: median and worst of 50 runs, ms.
const random = seededRandom(1);
const candidates: readonly Candidate[] = Array.from({ length: 5_000 }, (_, index) => ({
  offer: aPlaceableOffer({
    region: `r${index % 30}`,
    zone: `z${index % 90}`,
    instanceType: `t${index % 60}`,
    spot: index % 2 === 0,
    hourlyUsd: Math.round(random() * 200) / 10,
  }),
  alternative: index % 3,
}));
let refusals: readonly Refusal[] = [];
for (const { offer } of candidates.slice(0, 200))
  refusals = rememberRefusal(refusals, offer, { kind: 'capacity', scope: 'zone', reason: 'no' }, 0, 0);
const facts: PlacementFacts = { order: 'any', refusals, starts: [], occupied: candidates.slice(0, 20).map(({ offer }) => offer), now: 1 };
const took = Array.from({ length: 50 }, () => {
  const startedAt = performance.now();
  rankCandidates(candidates, facts);
  return performance.now() - startedAt;
}).toSorted((a, b) => a - b);
process.stdout.write(`5,000 offers, ${refusals.length} refusals: ${took[25]?.toFixed(1)} ms, at most ${took.at(-1)?.toFixed(1)} ms\n`);
