import { expect, test } from 'vitest';
import { LineRate } from './line-rate.ts';

test('each second has room for twenty lines', () => {
  const rate = new LineRate();
  const admitted = (now: number): number => Array.from({ length: 50 }, () => rate.admits(now)).filter(Boolean).length;
  expect([0, 999, 1_000, 5_500].map(admitted)).toEqual([20, 0, 20, 20]);
});
