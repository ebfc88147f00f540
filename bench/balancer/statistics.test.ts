import { expect, test } from 'vitest';
import { median, pairedRatios } from './statistics.ts';

test('the median of an even number of values averages the middle two', () => {
  expect([median([3, 1, 2]), median([4, 1, 3, 2]), median([])]).toEqual([2, 2.5, Number.NaN]);
});

test('paired ratios divide values of the same round', () => {
  expect(pairedRatios([10, 40, 30], [10, 20, 10])).toEqual({ median: 2, min: 1, max: 3 });
});
