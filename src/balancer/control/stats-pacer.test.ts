import { expect, test } from 'vitest';
import { StatsPacer } from './stats-pacer.ts';

const stats = (requestsTotal: number) =>
  ({ type: 'stats', at: requestsTotal, requestsTotal, errorsTotal: 0, inFlight: { 1: 0 }, queued: 0 }) as const;

test('changed stats are due at once, unchanged ones each second', () => {
  const pacer = new StatsPacer();
  const at = (now: number, total: number): boolean => pacer.isDue(stats(total), now);
  expect([at(0, 1), at(250, 1), at(500, 2), at(750, 2), at(1_499, 2), at(1_500, 2), at(1_750, 2)]).toEqual([
    true,
    false,
    true,
    false,
    false,
    true,
    false,
  ]);
});

test('a change of only the report time does not count', () => {
  const pacer = new StatsPacer();
  pacer.isDue({ ...stats(1), at: 5 }, 0);
  expect(pacer.isDue({ ...stats(1), at: 6 }, 250)).toBe(false);
});
