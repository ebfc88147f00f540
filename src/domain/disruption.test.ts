import { expect, test } from 'vitest';
import { allowedDisruption, nextShortage, type Shortage } from './disruption.ts';

const minute = 60_000;

/** The allowed disruption after each report of ready replicas, `[minutes, ready]`, with the target 3. */
function allowedAfter(...reports: readonly (readonly [minutes: number, ready: number])[]): readonly string[] {
  let shortage: Shortage | undefined;
  return reports.map(([minutes, ready]) => {
    const counts = { ready, target: 3 };
    shortage = nextShortage(shortage, counts, minutes * minute);
    return allowedDisruption(counts, shortage, minutes * minute);
  });
}

test('after the loss of a replica, the next one ends only when all are ready', () => {
  expect(allowedAfter([0, 3], [1, 2], [5, 2], [6, 3])).toEqual(['one', 'none', 'none', 'one']);
});

test('a shortage blocks drains for half an hour, and each loss restarts the time', () => {
  expect(allowedAfter([0, 2], [29, 2], [30, 2], [31, 1], [60, 1], [61, 1])).toEqual(['none', 'none', 'one', 'none', 'none', 'one']);
});

test('replicas that are lost again and again block drains for an hour, until the drain ends one', () => {
  const states = allowedAfter([0, 2], [20, 1], [30, 2], [40, 1], [50, 2], [59, 1], [60, 1], [61, 0]);
  expect(states).toEqual(['none', 'none', 'none', 'none', 'none', 'none', 'one', 'none']);
});

test('a replica that becomes ready does not restart the time of a shortage', () => {
  expect(allowedAfter([0, 1], [29, 2], [30, 2])).toEqual(['none', 'none', 'one']);
});

test('a service without desired replicas needs no protection', () => {
  expect(allowedDisruption({ ready: 2, target: 0 }, undefined, 0)).toBe('any');
});
