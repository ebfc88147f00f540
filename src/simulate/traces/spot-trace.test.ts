import { expect, test } from 'vitest';
import { readSpotTrace } from './spot-trace.ts';

const good = {
  gap_seconds: 300,
  zones: ['us-east-1a', 'us-west-2b'],
  capacity: [
    [1, 0, 4],
    [0, 2, 2],
  ],
};

test('a spot trace has the room of each zone at each step', () => {
  expect(readSpotTrace('zones.json', JSON.stringify({ ...good, name: 'autumn', prices: null }))).toEqual({
    name: 'autumn',
    gapSeconds: 300,
    zones: good.zones,
    capacity: good.capacity,
  });
  expect(readSpotTrace('zones.json', JSON.stringify(good)).name).toBe('zones.json');
});

test('recorded prices are means over the steps that have one', () => {
  const prices = [[1, 2, 0], null];
  expect(readSpotTrace('zones.json', JSON.stringify({ ...good, prices })).spotUsd).toEqual([1.5, undefined]);
});

test.for([
  ['[]', 'a JSON object'],
  [{ ...good, gap_seconds: 0 }, 'a whole number in `gap_seconds`'],
  [{ ...good, zones: [1, 2] }, 'names of zones in `zones`'],
  [{ ...good, capacity: [[1]] }, 'one list in `capacity` for each of the 2 zones'],
  [{ ...good, capacity: [[], []] }, '1 to 300000 steps in each list of `capacity`'],
  [{ ...good, capacity: [[1, 2], [1]] }, 'as many steps for zone us-west-2b as for the first: 2'],
  [{ ...good, prices: [[1, 1, 1]] }, 'one list or null in `prices` for each of the 2 zones'],
  [
    {
      ...good,
      capacity: [
        [1, 2],
        [1, 0.5],
      ],
    },
    'a whole number of replicas at step 2 of zone us-west-2b',
  ],
] as const)('%j is refused: expected %s', ([content, expected]) => {
  const text = typeof content === 'string' ? content : JSON.stringify(content);
  expect(() => readSpotTrace('zones.json', text)).toThrow(`The spot trace zones.json cannot be read: expected ${expected}.`);
});

test('text that is no JSON is refused', () => {
  expect(() => readSpotTrace('zones.json', '{"zones":')).toThrow('The spot trace zones.json is not JSON.');
});
