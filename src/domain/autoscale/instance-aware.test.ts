import fc from 'fast-check';
import { expect, test } from 'vitest';
import { wantedByCapacity } from './instance-aware.ts';
import { wantedByRate } from './request-rate.ts';

/** What a rate (requests per second) asks for, over replicas that take so much each. */
const wanted = (rate: number, living: readonly number[], toCome: number): number =>
  wantedByCapacity({ requestsInWindow: rate * 60, fleet: { living, toCome } });

test.each([
  ['nothing', 0, [10, 2], 10, 0],
  ['what the strongest takes', 10, [10, 2, 2], 10, 1],
  ['a little more', 10.5, [10, 2, 2], 10, 2],
  ['all that the three take', 14, [10, 2, 2], 10, 3],
  ['more than they take, by less than one more', 14.5, [10, 2, 2], 10, 4],
  ['more than they take, by two more', 30, [10, 2, 2], 10, 5],
  ['something, where there is none yet', 4, [], 2, 2],
])('%s: %d requests/s over %j -> %d', (_about, rate, living, toCome, expected) => {
  expect(wanted(rate, living, toCome)).toBe(expected);
});

const positive = fc.integer({ min: 1, max: 100 });
const fleet = fc.array(positive, { maxLength: 20 });

test('what is wanted takes the rate, with those kept first and those to come', () => {
  const property = fc.property(fc.nat(2_000), fleet, positive, (rate, living, toCome) => {
    const count = wanted(rate, living, toCome);
    const kept = living.slice(0, count).reduce((sum, qps) => sum + qps, 0);
    return kept + Math.max(0, count - living.length) * toCome >= rate;
  });
  fc.assert(property);
});

test('one replica fewer would not take the rate', () => {
  const property = fc.property(fc.integer({ min: 1, max: 2_000 }), fleet, positive, (rate, living, toCome) => {
    const count = wanted(rate, living, toCome) - 1;
    const kept = living.slice(0, count).reduce((sum, qps) => sum + qps, 0);
    return kept + Math.max(0, count - living.length) * toCome < rate;
  });
  fc.assert(property);
});

test('more requests never ask for fewer replicas', () => {
  const property = fc.property(
    fc.nat(1_000),
    fc.nat(1_000),
    fleet,
    positive,
    (rate, more, living, toCome) => wanted(rate + more, living, toCome) >= wanted(rate, living, toCome),
  );
  fc.assert(property);
});

test('replicas that take the same are counted as with one target for all', () => {
  const property = fc.property(fc.nat(5_000), positive, fc.nat(30), (requestsInWindow, target, living) => {
    const equal = { living: Array.from({ length: living }, () => target), toCome: target };
    return wantedByCapacity({ requestsInWindow, fleet: equal }) === wantedByRate(target, { requestsInWindow });
  });
  fc.assert(property);
});
