import fc from 'fast-check';
import { expect, test } from 'vitest';
import { lossDistribution, type ZoneFleet } from './fleet-risk.ts';

const fleet = (region: string, count: number, risk: number): ZoneFleet => ({ region, count, risk });
const closeTo = (numbers: readonly number[]) => numbers.map((number) => expect.closeTo(number, 10));

test('one replica is lost with the risk of its zone', () => {
  expect(lossDistribution([fleet('a', 1, 0.2)])).toEqual(closeTo([0.8, 0.2]));
});

test('a zone takes all replicas nine times out of ten, else half of them', () => {
  expect(lossDistribution([fleet('a', 4, 0.2)])).toEqual(closeTo([0.8, 0, 0.02, 0, 0.18]));
});

test('zones of different regions are lost independently', () => {
  expect(lossDistribution([fleet('a', 1, 0.2), fleet('b', 1, 0.5)])).toEqual(closeTo([0.4, 0.5, 0.1]));
});

test('zones of one region are lost together more often', () => {
  const apart = lossDistribution([fleet('a', 1, 0.1), fleet('b', 1, 0.1)]);
  const together = lossDistribution([fleet('a', 1, 0.1), fleet('a', 1, 0.1)]);
  // A fifth of the losses hits both; the zones' own losses are rarer by that.
  expect(together).toEqual(closeTo([0.98 * 0.92 ** 2, 0.98 * 2 * 0.08 * 0.92, 0.98 * 0.08 ** 2 + 0.02]));
  expect(together[2]).toBeGreaterThan(2 * (apart[2] ?? 1));
});

const fleets = fc.array(
  fc.record({ region: fc.constantFrom('a', 'b', 'c'), count: fc.nat(12), risk: fc.double({ min: 0, max: 1, noNaN: true }) }),
  { maxLength: 9 },
);

test('the probabilities of any fleet add up to 1', () => {
  fc.assert(
    fc.property(fleets, (zones) => {
      const sorted = zones.toSorted((a, b) => (a.region < b.region ? -1 : 1));
      const losses = lossDistribution(sorted);
      expect(losses).toHaveLength(1 + sorted.reduce((sum, { count }) => sum + count, 0));
      expect(losses.reduce((sum, probability) => sum + probability, 0)).toBeCloseTo(1, 9);
    }),
  );
});
