import { expect, test } from 'vitest';
import { leastOnDemand } from './spot-bound.ts';

const trace = {
  name: 'hour',
  gapSeconds: 100,
  zones: ['a', 'b'],
  capacity: [
    [4, 0, 4, 4],
    [1, 1, 1, 0],
  ],
};

const spotPrices = [0.5, 0.5];

test('without a cold start, on demand fills what the zones have no room for', () => {
  // Room: 5, 1, 5, 4.
  expect(leastOnDemand(trace, { target: 4, coldStartSeconds: 0, spotPrices })).toEqual({
    spot: 13 / 16,
    onDemand: 3 / 16,
    cost: 13 / 32 + 3 / 16,
  });
});

test('a zone counts only after it had room for a whole cold start', () => {
  // Room over two steps: 5, 1, 1, 4; for half of each step, it is that of one step.
  const { spot } = leastOnDemand(trace, { target: 4, coldStartSeconds: 50, spotPrices });
  expect(spot).toBe((4 + 1 + (4 + 1) / 2 + 4) / 16);
  expect(leastOnDemand(trace, { target: 4, coldStartSeconds: 100, spotPrices }).spot).toBe((4 + 1 + 1 + 4) / 16);
});

test('the bound uses the cheapest zones first, and none that costs more than on demand', () => {
  // Zone b is cheaper: three of its steps have room for one; zone a gives 3, 0, 3, 4.
  expect(leastOnDemand(trace, { target: 4, coldStartSeconds: 0, spotPrices: [0.5, 0.25] }).cost).toBe((10 * 0.5 + 3 * 0.25 + 3) / 16);
  expect(leastOnDemand(trace, { target: 4, coldStartSeconds: 0, spotPrices: [1.2, 0.25] })).toMatchObject({ spot: 3 / 16 });
});
