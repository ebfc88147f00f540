import { kindOf, type Candidate, type OccupiedLocation, type PlacementFacts, type PlaceableOffer, type StartTimes } from '../placement.ts';
import { spotZoneOf } from '../spot/placer.ts';
import { refusalOf } from './refusals.ts';

/** Smaller price differences count as equal: far above the rounding error of floating-point sums. */
const priceUnitsPerUsd = 1_000_000;

/** Most important first; see `orderCandidates`. */
type Rank = readonly number[];

/**
 * All candidates, best first, including refused ones. Sort keys:
 * 1. the alternative, when those are ordered;
 * 2. with a spot placer, for spot offers: the order of the hedge, if any; active zones; zones without a spot replica of
 *    the service;
 * 3. while the service wakes with `wake: fastest`, the expected time until the replica is ready;
 * 4. the hourly price;
 * 5. zones without a replica of the service that fails its probes;
 * 6. how fast machines start there;
 * 7. the fewest replicas of the service (in the region, then in the zone);
 * 8. the order in which the providers returned the offers.
 */
export function orderCandidates<C extends Candidate>(candidates: readonly C[], facts: PlacementFacts): readonly C[] {
  const rankOf = ranker(facts);
  return candidates
    .map((candidate) => ({ candidate, rank: rankOf(candidate) }))
    .toSorted((a, b) => compareRanks(a.rank, b.rank))
    .map(({ candidate }) => candidate);
}

/** The candidates of `orderCandidates` that may be asked now. */
export function rankCandidates<C extends Candidate>(candidates: readonly C[], facts: PlacementFacts): readonly C[] {
  const refusals = facts.refusals.filter(({ until }) => until > facts.now);
  const allowed =
    refusals.length === 0 ? candidates : candidates.filter(({ offer }) => refusalOf(offer, refusals, facts.now) === undefined);
  return orderCandidates(allowed, facts);
}

/** Times until a replica is ready that differ by less than this count as equal, s. */
const readyStepSeconds = 15;

/** What `isPreferred` needs of the facts. */
export type Preference = Pick<PlacementFacts, 'order' | 'readySeconds'>;

/** Whether `a` is preferred for its alternative, the expected time of a wake, and its price, regardless of the rest. */
export function isPreferred(a: Candidate, b: Candidate, { order, readySeconds }: Preference): boolean {
  if (order === 'ordered' && a.alternative !== b.alternative) return a.alternative < b.alternative;
  const [readyA, readyB] = [readyStep(a, readySeconds), readyStep(b, readySeconds)];
  if (readyA !== readyB) return readyA < readyB;
  return priceOf(a) < priceOf(b);
}

const priceOf = ({ offer }: Candidate): number => Math.round(offer.hourlyUsd * priceUnitsPerUsd);

const readyStep = ({ offer }: Candidate, readySeconds: PlacementFacts['readySeconds']): number =>
  readySeconds === undefined ? 0 : Math.round(readySeconds(offer) / readyStepSeconds);

function ranker({
  order,
  readySeconds,
  starts,
  occupied,
  placer,
  spotZones = [],
  zoneOrder,
}: PlacementFacts): (candidate: Candidate) => Rank {
  const preempted = new Set(spotZones.filter(({ isPreempted }) => isPreempted).map(({ zone }) => zone));
  const zones = zoneOrder === undefined ? undefined : placesOf(zoneOrder(occupied));
  const used = new Set(occupied.filter(({ spot }) => spot !== false).map(spotZoneOf));
  const classes = new Map(starts.map(({ kind, took }) => [kind, startClass(medianOf(took))]));
  const inRegion = Map.groupBy(occupied, ({ provider, region }) => `${provider}|${region}`);
  const failing = new Set(occupied.filter(({ isFailing }) => isFailing).map(zoneOf));
  const inZone = Map.groupBy(occupied, zoneOf);
  return (candidate) => {
    const { offer, alternative } = candidate;
    const region = `${offer.provider}|${offer.region}`;
    return [
      order === 'ordered' ? alternative : 0,
      zones !== undefined && offer.spot ? (zones.get(spotZoneOf(offer)) ?? zones.size) : 0,
      placer !== undefined && offer.spot && preempted.has(spotZoneOf(offer)) ? 1 : 0,
      placer !== undefined && offer.spot && used.has(spotZoneOf(offer)) ? 1 : 0,
      readyStep(candidate, readySeconds),
      priceOf(candidate),
      failing.has(zoneOf(offer)) ? 1 : 0,
      classes.size === 0 ? 0 : (classes.get(kindOf(offer)) ?? 0),
      inRegion.get(region)?.length ?? 0,
      inZone.get(zoneOf(offer))?.length ?? 0,
    ];
  };
}

const zoneOf = ({ provider, region, zone }: OccupiedLocation): string => `${provider}|${region}|${zone ?? ''}`;

const placesOf = (zones: readonly string[] | undefined): ReadonlyMap<string, number> | undefined =>
  zones && new Map(zones.map((zone, index) => [zone, index]));

function compareRanks(a: Rank, b: Rank): number {
  for (const [index, value] of a.entries()) {
    const difference = value - (b[index] ?? 0);
    if (difference !== 0) return difference;
  }
  return 0;
}

/** Number of measurements per kind that count: enough that one slow boot does not decide. */
const keptEach = 5;
const keptKinds = 200;

/** Differences below this do not matter, ms. Above it, each class spans a doubling. */
const finestMs = 15_000;

/** Records how long a machine took from the request until it ran, ms. */
export function rememberStart(starts: readonly StartTimes[], offer: PlaceableOffer, tookMs: number): readonly StartTimes[] {
  const kind = kindOf(offer);
  const took = [...(starts.find((one) => one.kind === kind)?.took ?? []), Math.round(tookMs)].slice(-keptEach);
  return [...starts.filter((one) => one.kind !== kind), { kind, took }].slice(-keptKinds);
}

/** The median of the measurements, the lower of two; undefined without measurements. */
export function medianOf(took: readonly number[]): number | undefined {
  return took.toSorted((a, b) => a - b)[Math.floor((took.length - 1) / 2)];
}

/**
 * Class of a start time: 0 up to 15 s, 1 up to 30 s, 2 up to a minute and so on. Locations that differ by seconds are
 * equal, and replicas spread over them. An unmeasured kind counts as fast, so that it gets measured.
 */
export function startClass(medianMs: number | undefined): number {
  return medianMs === undefined || medianMs <= finestMs ? 0 : Math.ceil(Math.log2(medianMs / finestMs));
}
