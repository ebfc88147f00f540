import fc from 'fast-check';
import { expect, test } from 'vitest';
import { desiredByCapacity, desiredByRate } from './autoscale.ts';

/** Replicas required by a rate (requests per second), given the capacity of each living replica and of a new one. */
const desired = (rate: number, living: readonly number[], toCome: number): number =>
  desiredByCapacity({ requestsInWindow: rate * 60, fleet: { living, toCome } });

test.each([
  ['nothing', 0, [10, 2], 10, 0],
  ['the capacity of the strongest', 10, [10, 2, 2], 10, 1],
  ['a little more', 10.5, [10, 2, 2], 10, 2],
  ['the capacity of all three', 14, [10, 2, 2], 10, 3],
  ['beyond the capacity by less than a new replica', 14.5, [10, 2, 2], 10, 4],
  ['beyond the capacity by two new replicas', 30, [10, 2, 2], 10, 5],
  ['a rate without living replicas', 4, [], 2, 2],
])('%s: %d requests/s over %j -> %d', (_about, rate, living, toCome, expected) => {
  expect(desired(rate, living, toCome)).toBe(expected);
});

const positive = fc.integer({ min: 1, max: 100 });
const fleet = fc.array(positive, { maxLength: 20 });

test('the desired replicas, kept and new ones, can handle the rate', () => {
  const property = fc.property(fc.nat(2_000), fleet, positive, (rate, living, toCome) => {
    const count = desired(rate, living, toCome);
    const kept = living.slice(0, count).reduce((sum, qps) => sum + qps, 0);
    return kept + Math.max(0, count - living.length) * toCome >= rate;
  });
  fc.assert(property);
});

test('one replica fewer could not handle the rate', () => {
  const property = fc.property(fc.integer({ min: 1, max: 2_000 }), fleet, positive, (rate, living, toCome) => {
    const count = desired(rate, living, toCome) - 1;
    const kept = living.slice(0, count).reduce((sum, qps) => sum + qps, 0);
    return kept + Math.max(0, count - living.length) * toCome < rate;
  });
  fc.assert(property);
});

test('more requests never require fewer replicas', () => {
  const property = fc.property(
    fc.nat(1_000),
    fc.nat(1_000),
    fleet,
    positive,
    (rate, more, living, toCome) => desired(rate + more, living, toCome) >= desired(rate, living, toCome),
  );
  fc.assert(property);
});

test('replicas of equal capacity are counted as with one target for all', () => {
  const property = fc.property(fc.nat(5_000), positive, fc.nat(30), (requestsInWindow, target, living) => {
    const equal = { living: Array.from({ length: living }, () => target), toCome: target };
    return desiredByCapacity({ requestsInWindow, fleet: equal }) === desiredByRate(target, { requestsInWindow });
  });
  fc.assert(property);
});
