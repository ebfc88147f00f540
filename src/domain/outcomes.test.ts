import { expect, test } from 'vitest';
import { addOutcomes, boundOutcomes, firstByteLimitsMs, outcomesSince, type Outcomes } from './outcomes.ts';

const some: Outcomes = { 1: { responses: 5, errors: 1, firstByteCounts: [2, 2] }, 2: { responses: 1, errors: 0, firstByteCounts: [0, 1] } };

test('sums contain the replicas of both', () => {
  const more: Outcomes = { 2: { responses: 2, errors: 1, firstByteCounts: [1, 0] }, 3: { responses: 1, errors: 1, firstByteCounts: [] } };
  expect(addOutcomes(some, more)).toEqual({
    1: some[1],
    2: { responses: 3, errors: 1, firstByteCounts: [1, 1] },
    3: { responses: 1, errors: 1, firstByteCounts: [] },
  });
});

test('increments contain only replicas whose counts grew, and add up to the later counts', () => {
  const later: Outcomes = { ...some, 1: { responses: 7, errors: 1, firstByteCounts: [3, 3] } };
  const news = outcomesSince(some, later);
  expect(news).toEqual({ 1: { responses: 2, errors: 0, firstByteCounts: [1, 1] } });
  expect(addOutcomes(some, news)).toEqual(later);
  expect(outcomesSince({}, some)).toEqual(some);
});

const waiting = (waits: number): Outcomes => ({ 1: { responses: 5, errors: 0, firstByteCounts: [5], waitCounts: [waits, 0] } });

test('a replica of which only waits grew is an increment', () => {
  expect(outcomesSince(waiting(1), waiting(3))).toEqual({ 1: { responses: 0, errors: 0, firstByteCounts: [0], waitCounts: [2, 0] } });
  expect(addOutcomes(some, waiting(1))[1]?.waitCounts).toEqual([1, 0]);
});

test('bucket limits grow by a quarter of an octave from 1 ms to more than 600 s', () => {
  expect([firstByteLimitsMs[0], firstByteLimitsMs[4], firstByteLimitsMs.length]).toEqual([1, 2, 78]);
  expect(firstByteLimitsMs.at(-1)).toBeGreaterThan(600_000);
  expect(firstByteLimitsMs.at(-2)).toBeLessThan(600_000);
});

test('of many gone replicas the newest are kept, and all living ones', () => {
  const one = { responses: 1, errors: 0, firstByteCounts: [1] };
  const many: Outcomes = Object.fromEntries(Array.from({ length: 300 }, (_, index) => [index + 1, one]));
  const kept = Object.keys(boundOutcomes(many, new Set(['3', '300'])));
  expect(kept).toHaveLength(102);
  expect(kept.slice(0, 2)).toEqual(['3', '200']);
  expect(boundOutcomes(some, new Set())).toBe(some);
});
