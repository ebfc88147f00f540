import { expect, test } from 'vitest';
import { quantile, spread } from './figures.ts';

test('a quantile is a measured value', () => {
  expect([quantile([1, 2, 3, 4], 0.5), quantile([1, 2, 3, 4], 0.99), quantile([], 0.5)]).toEqual([3, 4, Number.NaN]);
});

test('a spread names the median, the slowest of a hundred and the maximum', () => {
  expect(spread([1, 2, 3])).toBe('p50 2.00, p99 3.00, max 3.00');
});
