import { expect, test } from 'vitest';
import { RetryBudget } from './retry-budget.ts';

function spendAll(budget: RetryBudget, now: number): number {
  let count = 0;
  while (budget.spend(now)) count += 1;
  return count;
}

test('three retries per second are always allowed', () => {
  const budget = new RetryBudget();
  expect([spendAll(budget, 0), spendAll(budget, 999), spendAll(budget, 1_000)]).toEqual([3, 0, 3]);
});

test('a fifth of the requests may be retried, and savings are limited', () => {
  const budget = new RetryBudget();
  spendAll(budget, 0);
  for (let request = 0; request < 50; request += 1) budget.earn();
  expect(spendAll(budget, 500)).toBeGreaterThanOrEqual(9);
  for (let request = 0; request < 100_000; request += 1) budget.earn();
  expect(spendAll(budget, 900)).toBeLessThanOrEqual(100);
});
