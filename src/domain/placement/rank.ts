import { kindOf, type Candidate, type PlacementFacts } from '../placement.ts';
import { refusalOf } from './refusals.ts';
import { medianOf, startClass } from './start-times.ts';

/** Prices that differ by less are equal: a millionth of a dollar, far above what adding floating-point numbers gets wrong. */
const priceUnitsPerUsd = 1_000_000;

/** What one candidate is compared by, most important first; see `rankCandidates`. */
type Rank = readonly number[];

/**
 * All candidates, best first, whether they are refused at the moment or not: by alternative where those are ordered, then by hourly price, then
 * by how fast machines start there, then where fewest replicas of the service are (in the region, then in the zone), then as the places gave them.
 */
export function orderCandidates<C extends Candidate>(candidates: readonly C[], facts: PlacementFacts): readonly C[] {
  const rankOf = ranker(facts);
  return candidates
    .map((candidate) => ({ candidate, rank: rankOf(candidate) }))
    .toSorted((a, b) => compareRanks(a.rank, b.rank))
    .map(({ candidate }) => candidate);
}

/** Those of `orderCandidates` that may be asked for now. */
export function rankCandidates<C extends Candidate>(candidates: readonly C[], facts: PlacementFacts): readonly C[] {
  const refusals = facts.refusals.filter(({ until }) => until > facts.now);
  const allowed =
    refusals.length === 0 ? candidates : candidates.filter(({ offer }) => refusalOf(offer, refusals, facts.now) === undefined);
  return orderCandidates(allowed, facts);
}

/** Whether the first is preferred for what it is and costs, whatever start times and spread say. */
export function isPreferred(a: Candidate, b: Candidate, order: PlacementFacts['order']): boolean {
  if (order === 'ordered' && a.alternative !== b.alternative) return a.alternative < b.alternative;
  return priceOf(a) < priceOf(b);
}

const priceOf = ({ offer }: Candidate): number => Math.round(offer.hourlyUsd * priceUnitsPerUsd);

function ranker({ order, starts, occupied }: PlacementFacts): (candidate: Candidate) => Rank {
  const classes = new Map(starts.map(({ kind, took }) => [kind, startClass(medianOf(took))]));
  const inRegion = Map.groupBy(occupied, ({ provider, region }) => `${provider}|${region}`);
  const inZone = Map.groupBy(occupied, ({ provider, region, zone }) => `${provider}|${region}|${zone ?? ''}`);
  return (candidate) => {
    const { offer, alternative } = candidate;
    const region = `${offer.provider}|${offer.region}`;
    return [
      order === 'ordered' ? alternative : 0,
      priceOf(candidate),
      classes.size === 0 ? 0 : (classes.get(kindOf(offer)) ?? 0),
      inRegion.get(region)?.length ?? 0,
      inZone.get(`${region}|${offer.zone ?? ''}`)?.length ?? 0,
    ];
  };
}

function compareRanks(a: Rank, b: Rank): number {
  for (const [index, value] of a.entries()) {
    const difference = value - (b[index] ?? 0);
    if (difference !== 0) return difference;
  }
  return 0;
}
