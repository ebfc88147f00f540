import { expect, test } from 'vitest';
import { simulateSearch, type Market, type SearchResult } from '../../test/support/search-simulation.ts';

/** Three in ten places have machines; all take as long to say so as slow clouds do. */
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
] as const)(
  'with seven in ten places refusing, %d replicas are ready in at most 1.2 times what one takes who knows where room is',
  { timeout: 120_000 },
  async ([replicas, seeds]) => {
    const all = await results({ ...scarce, replicas }, seeds);
    expect(timeRatio(all)).toBeLessThanOrEqual(1.2);
    expect(all.reduce((sum, { leaked }) => sum + leaked, 0)).toBe(0);
  },
);

test('where places answer within seconds, hardly more is asked than has to be, hardly a machine is given back, and the price is the least', async () => {
  const all = await results({ ...scarce, answerMs: [500, 2_500], replicas: 4 }, 6);
  expect(timeRatio(all)).toBeLessThanOrEqual(1.1);
  expect(mean(all.map(({ surplus }) => surplus))).toBeLessThanOrEqual(0.5);
  expect(mean(all.map(({ priceRatio }) => priceRatio))).toBeLessThanOrEqual(1.05);
}, 60_000);
