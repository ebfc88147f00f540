import { expect, test } from 'vitest';
import { simulateSearch, type Market, type SearchResult } from '../../test/support/search-simulation.ts';

/** Three in ten offers have machines. All answers take as long as those of slow clouds. */
const scarce: Omit<Market, 'seed' | 'replicas'> = { kinds: 60, refusing: 0.7, answerMs: [5_000, 60_000], room: [64, 64] };

async function results(market: Omit<Market, 'seed'>, seeds: number): Promise<readonly SearchResult[]> {
  const all: SearchResult[] = [];
  for (let seed = 1; seed <= seeds; seed += 1) all.push(await simulateSearch({ ...market, seed }));
  return all;
}

const mean = (values: readonly number[]): number => values.reduce((sum, value) => sum + value, 0) / values.length;
const timeRatio = (all: readonly SearchResult[]): number => mean(all.map(({ tookMs, oracleMs }) => tookMs / oracleMs));

test.for([
  [1, 20],
  [4, 12],
  [16, 6],
  [64, 2],
] as const)('with seven in ten locations refusing, %d replicas take at most 1.2 times the optimum', async ([replicas, seeds]) => {
  const all = await results({ ...scarce, replicas }, seeds);
  expect(timeRatio(all)).toBeLessThanOrEqual(1.2);
  expect(all.reduce((sum, { leaked }) => sum + leaked, 0)).toBe(0);
});

test('with fast answers the search is near optimal in asks, surplus and price', async () => {
  const all = await results({ ...scarce, answerMs: [500, 2_500], replicas: 4 }, 6);
  expect(timeRatio(all)).toBeLessThanOrEqual(1.1);
  expect(mean(all.map(({ surplus }) => surplus))).toBeLessThanOrEqual(0.5);
  expect(mean(all.map(({ priceRatio }) => priceRatio))).toBeLessThanOrEqual(1.05);
});
