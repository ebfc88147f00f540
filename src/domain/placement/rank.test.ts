import fc from 'fast-check';
import { expect, test } from 'vitest';
import { aPlaceableOffer } from '../../../test/support/builders.ts';
import { kindOf, type Candidate, type PlaceableOffer, type PlacementFacts, type Refusal } from '../placement.ts';
import { orderCandidates, rankCandidates } from './rank.ts';
import { covers } from './refusals.ts';

const facts = (change: Partial<PlacementFacts> = {}): PlacementFacts => ({
  order: 'any',
  refusals: [],
  starts: [],
  occupied: [],
  now: 1_000,
  ...change,
});

const candidate = (region: string, hourlyUsd = 1, change: Partial<PlaceableOffer> = {}, alternative = 0): Candidate => ({
  offer: aPlaceableOffer({ region, hourlyUsd, ...change }),
  alternative,
});

const regions = (candidates: readonly Candidate[], given: Partial<PlacementFacts> = {}): readonly string[] =>
  orderCandidates(candidates, facts(given)).map(({ offer }) => offer.region);

test('the cheapest candidate is first, regardless of start times and spread', () => {
  const starts = [{ kind: kindOf(candidate('b').offer), took: [500_000] }];
  const occupied = [{ provider: 'stub', region: 'b' }];
  expect(regions([candidate('a', 2), candidate('b', 1), candidate('c', 3)], { starts, occupied })).toEqual(['b', 'a', 'c']);
});

test('prices that differ by less than rounding errors are equal', () => {
  expect(regions([candidate('a', 0.1 + 0.2), candidate('b', 0.3)])).toEqual(['a', 'b']);
});

test('among equal prices, the lower class of median start time is first', () => {
  const took = (region: string, ...ms: number[]) => ({ kind: kindOf(candidate(region).offer), took: ms });
  const starts = [took('a', 100_000, 110_000, 9_000), took('b', 20_000, 600_000, 25_000), took('c', 26_000)];
  expect(regions([candidate('a'), candidate('c'), candidate('b')], { starts })).toEqual(['c', 'b', 'a']);
});

test('an unmeasured kind is tried before a kind known as slow', () => {
  const starts = [{ kind: kindOf(candidate('a').offer), took: [100_000] }];
  expect(regions([candidate('a'), candidate('b')], { starts })).toEqual(['b', 'a']);
});

test("equal candidates spread over regions, then zones, then keep the providers' order", () => {
  const all = [candidate('a', 1, { zone: 'a1' }), candidate('a', 1, { zone: 'a2' }), candidate('b', 1, { zone: 'b1' }), candidate('c')];
  const occupied = [
    { provider: 'stub', region: 'a', zone: 'a1' },
    { provider: 'stub', region: 'b', zone: 'b1' },
    { provider: 'other', region: 'c', zone: null },
  ];
  const ordered = orderCandidates(all, facts({ occupied })).map(({ offer }) => offer.zone ?? offer.region);
  expect(ordered).toEqual(['c', 'a2', 'a1', 'b1']);
});

test('among equal prices, a zone whose replica fails its probes comes last', () => {
  const all = [candidate('a', 1, { zone: 'a1' }), candidate('a', 1, { zone: 'a2' }), candidate('b', 2)];
  const occupied = [
    { provider: 'stub', region: 'a', zone: 'a1', isFailing: true },
    { provider: 'stub', region: 'a', zone: 'a2' },
    { provider: 'stub', region: 'a', zone: 'a2' },
  ];
  expect(orderCandidates(all, facts({ occupied })).map(({ offer }) => offer.zone ?? offer.region)).toEqual(['a2', 'a1', 'b']);
});

test('ordered alternatives keep their order, others are compared by price alone', () => {
  const all = [candidate('a', 1, {}, 1), candidate('b', 5, {}, 0), candidate('c', 4, {}, 0)];
  expect(regions(all, { order: 'ordered' })).toEqual(['c', 'b', 'a']);
  expect(regions(all)).toEqual(['a', 'c', 'b']);
});

/** The better of two candidates, written from the documented rules and independent of the code in `rank.ts`. */
function isBetter(a: Candidate, b: Candidate, given: PlacementFacts): boolean {
  if (given.order === 'ordered' && a.alternative !== b.alternative) return a.alternative < b.alternative;
  if (a.offer.hourlyUsd !== b.offer.hourlyUsd) return a.offer.hourlyUsd < b.offer.hourlyUsd;
  const slowness = ({ offer }: Candidate): number => {
    const took = given.starts.find(({ kind }) => kind === kindOf(offer))?.took ?? [];
    const middle = [...took].toSorted((x, y) => x - y)[Math.floor((took.length - 1) / 2)] ?? 0;
    let steps = 0;
    for (let limit = 15_000; middle > limit; limit *= 2) steps += 1;
    return steps;
  };
  if (slowness(a) !== slowness(b)) return slowness(a) < slowness(b);
  const inRegion = ({ offer }: Candidate): number =>
    given.occupied.filter((one) => one.provider === offer.provider && one.region === offer.region).length;
  if (inRegion(a) !== inRegion(b)) return inRegion(a) < inRegion(b);
  const inZone = ({ offer }: Candidate): number =>
    given.occupied.filter((one) => one.provider === offer.provider && one.region === offer.region && one.zone === offer.zone).length;
  return inZone(a) < inZone(b);
}

/** Repeatedly takes the best remaining candidate: slow and simple. */
function bruteForce(candidates: readonly Candidate[], given: PlacementFacts): readonly Candidate[] {
  const left = candidates.filter(({ offer }) => !given.refusals.some((refusal) => refusal.until > given.now && covers(refusal, offer)));
  const ordered: Candidate[] = [];
  while (left.length > 0) {
    const best = left.find((one) => left.every((other) => !isBetter(other, one, given)));
    if (best === undefined) throw new Error('the rules contradict each other');
    ordered.push(best);
    left.splice(left.indexOf(best), 1);
  }
  return ordered;
}

const locations = fc.record({
  provider: fc.constantFrom('aws', 'ssh'),
  region: fc.constantFrom('east', 'west'),
  zone: fc.constantFrom('a', 'b'),
});
const anyOffer: fc.Arbitrary<PlaceableOffer> = fc
  .tuple(
    locations,
    fc.constantFrom('small', 'large'),
    fc.boolean(),
    fc.constantFrom(undefined, { name: 'L4', count: 1 }),
    fc.constantFrom(0, 0.5, 1, 2),
  )
  .map(([location, instanceType, spot, accelerator, hourlyUsd]) => ({
    ...location,
    instanceType,
    cpus: instanceType === 'small' ? 2 : 8,
    accelerator,
    spot,
    hourlyUsd,
  }));
const anyRefusal: fc.Arbitrary<Refusal> = fc.record({
  offer: anyOffer,
  kind: fc.constantFrom('capacity', 'quota', 'price', 'permission', 'throttled', 'provider-error', 'setup', 'unsupported', 'failed-launch'),
  scope: fc.constantFrom('zone', 'zone', 'region', 'namespace', 'whole-region', 'provider'),
  count: fc.constant(1),
  until: fc.constantFrom(500, 1_000, 2_000),
  reason: fc.constant(''),
});
const anyInstance = fc.tuple(
  fc.array(fc.record({ offer: anyOffer, alternative: fc.nat(2) }), { maxLength: 9 }),
  fc.record({
    order: fc.constantFrom('any', 'ordered'),
    refusals: fc.array(anyRefusal, { maxLength: 3 }),
    starts: fc.uniqueArray(
      fc.record({
        kind: anyOffer.map(kindOf),
        took: fc.array(fc.constantFrom(9_000, 15_000, 16_000, 31_000, 90_000), { minLength: 1, maxLength: 5 }),
      }),
      { maxLength: 5, selector: ({ kind }) => kind },
    ),
    occupied: fc.array(locations, { maxLength: 5 }),
    now: fc.constant(1_000),
  }),
);

test('on 10,000 random instances the order equals that of brute force', () => {
  fc.assert(
    fc.property(anyInstance, ([candidates, given]) => {
      const ranked = rankCandidates(candidates, given);
      const expected = bruteForce(candidates, given);
      expect(ranked.length).toBe(expected.length);
      for (const [index, one] of ranked.entries()) if (one !== expected[index]) throw new Error(`differs at ${index}`);
    }),
    { numRuns: 10_000 },
  );
});
