import { expect, test } from 'vitest';
import { simulateSpot } from './spot-simulation.ts';

const day = 288;
const question = {
  trace: {
    name: 'day',
    gapSeconds: 300,
    zones: ['us-east-1a', 'us-west-2b'],
    capacity: [Array.from({ length: day }, () => 4), Array.from({ length: day }, (_, step) => (step < day / 2 ? 4 : 0))],
  },
  target: 4,
  coldStartSeconds: 60,
  spotPrices: [0.25, 0.25],
  spare: 1,
  compared: ['even_spread', 'on_demand'],
} as const;

test('only on-demand replicas cost the whole and are always available', () => {
  const [, onDemand] = simulateSpot(question).scores;
  expect(onDemand).toMatchObject({ policy: 'on_demand', cost: 1, available: 1, failed: 0, spotHours: 0, onDemandHours: 96 });
});

test('a zone that is lost at noon halves an even spread, at the price of spot', () => {
  const { scores, courses } = simulateSpot(question);
  expect(scores[0]).toMatchObject({ cost: 0.25 * 0.75, spotHours: 72, onDemandHours: 0, lostPerDay: 2 });
  expect(scores[0]?.available).toBeCloseTo(0.5, 2);
  const noon = courses[0]?.points.filter(({ second }) => Math.abs(second - 43_200) <= 30);
  expect(noon?.map(({ ready }) => ready)).toEqual([4, 2, 2]);
});
