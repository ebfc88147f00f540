import { expect, test } from 'vitest';
import { aPlaceableOffer } from '../../../test/support/builders.ts';
import type { Candidate, PlacementFacts, KnownZone } from '../placement.ts';
import { planReplicaPlacement } from '../placement/plan.ts';
import { rankCandidates } from '../placement/rank.ts';
import { activateZone, addZones, preemptZone } from './placer.ts';

const inZone = (zone: string, hourlyUsd = 1) => aPlaceableOffer({ zone, hourlyUsd, spot: true });
const [a, b, c] = [inZone('a', 1), inZone('b', 2), inZone('c', 3)];
const all = addZones([], [a, b, c, aPlaceableOffer({ zone: 'd' })]);
const preempted = (zones: readonly KnownZone[]): string =>
  zones.flatMap(({ zone, isPreempted }) => (isPreempted ? [zone.split('|')[2]] : [])).join('');

// By hand from SkyServe's placer: the cheapest active zone without a spot replica, else the cheapest active one.
const facts = (spotZones: readonly KnownZone[], occupied: PlacementFacts['occupied'] = []): PlacementFacts => ({
  order: 'any',
  refusals: [],
  starts: [],
  occupied,
  now: 0,
  placer: 'dynamic_fallback',
  spotZones,
});
const ranked = (spotZones: readonly KnownZone[], occupied: PlacementFacts['occupied'] = []): string =>
  rankCandidates(
    [c, b, a].map((offer): Candidate => ({ offer, alternative: 0 })),
    facts(spotZones, occupied),
  )
    .map(({ offer }) => offer.zone)
    .join('');

test('the cheapest active zone without a spot replica comes first, then the cheapest active one', () => {
  expect(ranked(all)).toBe('abc');
  expect(ranked(all, [a])).toBe('bca');
  expect(ranked(all, [a, b, c])).toBe('abc');
  expect(ranked(preemptZone(all, a))).toBe('bca');
  expect(ranked(preemptZone(all, a), [b])).toBe('cba');
});

test('an on-demand replica in a zone does not occupy it', () => {
  expect(ranked(all, [{ ...a, spot: false }])).toBe('abc');
});

test('a zone is preempted until it accepts a launch', () => {
  const lost = preemptZone(all, b);
  expect([preempted(lost), preempted(activateZone(lost, b)), preempted(activateZone(lost, a))]).toEqual(['b', '', 'b']);
});

test('when fewer than two zones are active, all become active', () => {
  expect(preempted(preemptZone(preemptZone(all, a), b))).toBe('');
  expect(preempted(preemptZone([], a))).toBe('');
});

test('a plan spreads replicas over the zones although one is cheaper', () => {
  const candidates = [a, b, c].map((offer): Candidate => ({ offer, alternative: 0 }));
  const plan = planReplicaPlacement(candidates, 4, facts(all));
  expect(plan.map(({ candidate, verdict }) => [candidate.offer.zone, verdict])).toEqual([
    ['a', { type: 'chosen', replicas: [1, 4], because: 'zones' }],
    ['b', { type: 'chosen', replicas: [2], because: 'zones' }],
    ['c', { type: 'chosen', replicas: [3], because: 'zones' }],
  ]);
});
