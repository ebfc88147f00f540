import fc from 'fast-check';
import { expect, test } from 'vitest';
import { forgetRefusal, nextAttemptAt, orderOffers, rememberRefusal, type PlaceableOffer, type Refusal } from './placement.ts';

const anOffer = (region: string, hourlyUsd = 0): PlaceableOffer => ({
  provider: 'local',
  region,
  zone: undefined,
  instanceType: 'host',
  accelerator: undefined,
  spot: false,
  hourlyUsd,
});

test('the cheapest is first, then the least crowded, then the given order', () => {
  const offers = [anOffer('a', 2), anOffer('b', 1), anOffer('c', 1), anOffer('d', 1)];
  const ordered = orderOffers(offers, [], [{ provider: 'local', region: 'b' }], 0);
  expect(ordered.map((offer) => offer.region)).toEqual(['c', 'd', 'b', 'a']);
});

test('a place that refused is left out until its pause is over, and each refusal doubles the pause', () => {
  const offers = [anOffer('a'), anOffer('b')];
  let refusals = rememberRefusal([], anOffer('a'), 'capacity', 0);
  expect(orderOffers(offers, refusals, [], 9_999).map((offer) => offer.region)).toEqual(['b']);
  expect(orderOffers(offers, refusals, [], 10_000)).toHaveLength(2);
  refusals = rememberRefusal(refusals, anOffer('a'), 'capacity', 10_000);
  expect(nextAttemptAt(offers, refusals)).toBe(30_000);
  expect(forgetRefusal(refusals, anOffer('a'))).toEqual([]);
});

test('a machine whose GPUs are taken may still be had without them', () => {
  const withGpu = { ...anOffer('a'), accelerator: { name: 'L4', count: 1 } };
  const refusals = rememberRefusal([], withGpu, 'capacity', 0);
  expect(orderOffers([withGpu, anOffer('a')], refusals, [], 1)).toEqual([anOffer('a')]);
});

test('a quota keeps a place out for an hour', () => {
  expect(rememberRefusal([], anOffer('a'), 'quota', 5)[0]?.until).toBe(3_600_005);
});

test('nothing refused means no time to wait for', () => {
  expect(nextAttemptAt([anOffer('a')], [])).toBeUndefined();
});

test('ordering neither invents nor repeats offers, and never gives a dearer one before a cheaper one', () => {
  const offer = fc
    .record({ region: fc.constantFrom('a', 'b', 'c'), hourlyUsd: fc.nat(5) })
    .map(({ region, hourlyUsd }) => anOffer(region, hourlyUsd));
  const property = fc.property(fc.array(offer), fc.array(fc.constantFrom('a', 'b', 'c')), (offers, refused) => {
    const refusals = refused.reduce<readonly Refusal[]>((list, region) => rememberRefusal(list, anOffer(region), 'capacity', 0), []);
    const ordered = orderOffers(offers, refusals, [], 1);
    expect(new Set(ordered).size).toBe(ordered.length);
    for (const [index, one] of ordered.entries()) {
      expect(offers).toContain(one);
      expect(refused).not.toContain(one.region);
      expect(one.hourlyUsd).toBeGreaterThanOrEqual(ordered[index - 1]?.hourlyUsd ?? 0);
    }
  });
  fc.assert(property);
});
