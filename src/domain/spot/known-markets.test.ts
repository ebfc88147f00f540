import { expect, test } from 'vitest';
import { aPlaceableOffer, aTask, someResources } from '../../../test/support/builders.ts';
import type { PlacementMemory } from '../placement.ts';
import { marketsFor, searchOf, withOffers, withZones } from './known-markets.ts';
import { preemptZone } from './placer.ts';

const inZone = (zone: string, hourlyUsd = 1) => aPlaceableOffer({ zone, hourlyUsd, spot: true });
const empty: PlacementMemory = { refusals: [], starts: [] };
const zonesOf = (memory: PlacementMemory, search: string): readonly string[] | undefined =>
  marketsFor(memory, search)?.spotZones?.map(({ zone, isPreempted }) => `${zone.split('|')[2]}${isPreempted ? ' preempted' : ''}`);
const searchFor = (change: Parameters<typeof someResources>[0]): string =>
  searchOf(aTask({ resources: { order: 'any', choices: [someResources(change)] } }));

test('versions share what searches have seen unless they request other machines', () => {
  const before = searchFor({ region: 'r1', imageId: 'one', labels: { team: 'a' } });
  expect(searchFor({ region: 'r1', imageId: 'two' })).toBe(before);
  expect(searchFor({ region: 'r2' })).not.toBe(before);
  expect(searchFor({ region: 'r1', instanceType: 'large' })).not.toBe(before);
});

test('zones and prices are those of searches for the same machines, of either market', () => {
  const first = withOffers(withOffers(empty, 'old', [inZone('a', 0.2)]), 'old', [aPlaceableOffer({ spot: false, hourlyUsd: 1 })]);
  expect(first.onDemandUsd).toBe(1);
  const both = withOffers(first, 'new', [inZone('b', 0.4)]);
  expect([zonesOf(both, 'old'), zonesOf(both, 'new'), zonesOf(both, 'other')]).toEqual([['a'], ['b'], undefined]);
  expect([marketsFor(both, 'old')?.onDemandUsd, marketsFor(both, 'new')?.onDemandUsd]).toEqual([1, undefined]);
  // A rollback searches again as before.
  const back = withOffers(both, 'old', [inZone('c', 0.3)]);
  expect([zonesOf(back, 'old'), zonesOf(back, 'new'), back.onDemandUsd]).toEqual([['a', 'c'], ['b'], 1]);
  expect(withOffers(back, 'old', [inZone('c', 0.3)])).toBe(back);
});

test('the last three searches are remembered', () => {
  const memory = ['1', '2', '3', '4'].reduce((known, search) => withOffers(known, search, [inZone(search)]), empty);
  expect(['1', '2', '3', '4'].map((search) => zonesOf(memory, search))).toEqual([undefined, ['2'], ['3'], ['4']]);
});

test('a refusal marks its zone for each search, and an older record applies until a search replaces it', () => {
  const older: PlacementMemory = { ...empty, spotZones: [{ zone: 'aws|r|a', isPreempted: false }], onDemandUsd: 9 };
  expect(zonesOf(older, 'any')).toEqual(['a']);
  const found = withOffers(older, 'old', [inZone('b'), inZone('c'), inZone('d')]);
  expect([zonesOf(found, 'old'), found.onDemandUsd]).toEqual([['b', 'c', 'd'], undefined]);
  const both = withOffers(found, 'new', [inZone('b'), inZone('e'), inZone('f')]);
  const refused = withZones(both, (zones) => preemptZone(zones, inZone('b')));
  expect([zonesOf(refused, 'old'), zonesOf(refused, 'new')]).toEqual([
    ['b preempted', 'c', 'd'],
    ['b preempted', 'e', 'f'],
  ]);
  expect(withZones(refused, (zones) => preemptZone(zones, inZone('z')))).toBe(refused);
});
