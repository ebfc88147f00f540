import fc from 'fast-check';
import { expect, test } from 'vitest';
import { aPlaceableOffer } from '../../../test/support/builders.ts';
import { kindOf, type Candidate, type PlaceableOffer, type PlacementFacts } from '../placement.ts';
import { planReplicaPlacement, type Verdict } from './plan.ts';
import { rankCandidates } from './rank.ts';
import { rememberRefusal } from './refusals.ts';

const candidate = (region: string, hourlyUsd = 1, change: Partial<PlaceableOffer> = {}, alternative = 0): Candidate => ({
  offer: aPlaceableOffer({ region, hourlyUsd, ...change }),
  alternative,
});

function plan(candidates: readonly Candidate[], replicas: number, change: Partial<PlacementFacts> = {}) {
  const facts: PlacementFacts = { order: 'any', refusals: [], starts: [], occupied: [], now: 0, ...change };
  return planReplicaPlacement(candidates, replicas, facts).map((judged) => [judged.candidate.offer.region, text(judged.verdict)].join(' '));
}

const text = (verdict: Verdict): string => (verdict.type === 'chosen' ? `chosen ${verdict.replicas.join('+')}` : verdict.type);

test('replicas spread over equally cheap candidates; dearer ones have the verdict "dearer"', () => {
  const all = [candidate('dear', 2), candidate('a'), candidate('b')];
  expect(plan(all, 3)).toEqual(['a chosen 1+3', 'b chosen 2', 'dear dearer']);
  expect(plan(all, 1)).toEqual(['a chosen 1', 'b equal', 'dear dearer']);
});

test('no location gets more replicas than its room; the next best gets the rest', () => {
  const all = [
    candidate('dear', 2, { room: 2 }),
    candidate('a', 1, { room: 1 }),
    candidate('b', 1, { room: 2 }),
    candidate('none', 1, { room: 0 }),
  ];
  expect(plan(all, 4)).toEqual(['a chosen 1', 'b chosen 2+3', 'none full', 'dear chosen 4']);
  expect(plan(all, 9)).toEqual(['a chosen 1', 'b chosen 2+3', 'none full', 'dear chosen 4+5']);
  expect(plan([candidate('a', 1, { room: 1 }), candidate('endless', 2)], 3)).toEqual(['a chosen 1', 'endless chosen 2+3']);
});

test('sizes on the same nodes share room; other accelerators have their own nodes', () => {
  const large = candidate('a', 1, { instanceType: 'large', accelerator: undefined, room: 2 });
  const small = candidate('a', 2, { instanceType: 'small', accelerator: undefined, room: 4 });
  const gpu = candidate('a', 3, { accelerator: { name: 'L4', count: 1 }, room: 1 });
  expect(plan([large, small, gpu], 9)).toEqual(['a chosen 1+2', 'a full', 'a chosen 3']);
});

const reasons = (candidates: readonly Candidate[], replicas: number) =>
  planReplicaPlacement(candidates, replicas, { order: 'any', refusals: [], starts: [], occupied: [], now: 0 }).map(({ verdict }) =>
    verdict.type === 'chosen' ? verdict.because : verdict.type,
  );

test('a chosen candidate is the only, the best, one of equals, or next best', () => {
  expect(reasons([candidate('a')], 2)).toEqual(['only']);
  expect(reasons([candidate('a'), candidate('b')], 1)).toEqual(['best', 'equal']);
  expect(reasons([candidate('a'), candidate('b')], 2)).toEqual(['spread', 'spread']);
  expect(reasons([candidate('a', 1, { room: 1 }), candidate('dear', 2)], 2)).toEqual(['best', 'better-full']);
});

test('refused, slower and later alternatives have different verdicts', () => {
  const all = [candidate('full', 0.5), candidate('slow'), candidate('good'), candidate('second', 0.1, {}, 1)];
  const refusals = rememberRefusal([], all[0]?.offer ?? aPlaceableOffer(), { kind: 'quota', scope: 'zone', reason: 'no' }, 0, 0);
  const starts = [{ kind: kindOf(candidate('slow').offer), took: [120_000] }];
  expect(plan(all, 1, { order: 'ordered', refusals, starts })).toEqual([
    'full refused',
    'good chosen 1',
    'slow slower',
    'second later-alternative',
  ]);
});

test('a machine that satisfies two alternatives is shown once', () => {
  expect(plan([candidate('a', 1, {}, 1), candidate('a', 1, {}, 0)], 1)).toEqual(['a chosen 1']);
});

test('without a choice, each candidate has its reason', () => {
  const one = candidate('full');
  const refusals = rememberRefusal([], one.offer, { kind: 'capacity', scope: 'zone', reason: 'none left' }, 0, 0);
  expect(plan([one], 2, { refusals })).toEqual(['full refused']);
  expect(plan([], 2)).toEqual([]);
});

test('each replica is placed where a launch after the earlier ones would search first', () => {
  const offer = fc
    .record({ region: fc.constantFrom('a', 'b', 'c'), zone: fc.constantFrom('x', 'y'), hourlyUsd: fc.constantFrom(1, 1, 2) })
    .map((change) => ({ offer: aPlaceableOffer(change), alternative: 0 }));
  const unique = fc.uniqueArray(offer, { minLength: 1, maxLength: 6, selector: (one) => kindOf(one.offer) });
  fc.assert(
    fc.property(unique, fc.integer({ min: 1, max: 6 }), (candidates, replicas) => {
      const facts: PlacementFacts = { order: 'any', refusals: [], starts: [], occupied: [], now: 0 };
      const judged = planReplicaPlacement(candidates, replicas, facts);
      const occupied: PlaceableOffer[] = [];
      for (let replica = 1; replica <= replicas; replica += 1) {
        const expected = rankCandidates(candidates, { ...facts, occupied })[0];
        const actual = judged.find(({ verdict }) => verdict.type === 'chosen' && verdict.replicas.includes(replica));
        expect(actual?.candidate).toBe(expected);
        if (expected !== undefined) occupied.push(expected.offer);
      }
    }),
  );
});
