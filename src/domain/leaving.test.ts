import { expect, test } from 'vitest';
import { leaversNow, leavesAt, type LeavingReplica } from './leaving.ts';

const leaving = (id: number, change: Partial<LeavingReplica> = {}): LeavingReplica => ({
  id,
  state: 'READY',
  noticedAt: 0,
  takenAt: 120_000,
  ...change,
});

test('it serves on until as many as are wanted are ready without it', () => {
  expect(leaversNow([leaving(1)], 1, 2, 60_000, 1_000)).toEqual([]);
  expect(leaversNow([leaving(1)], 2, 2, 60_000, 1_000)).toEqual([1]);
});

test('of several that leave, as many go as can be spared, those that are taken first before others', () => {
  const both = [leaving(1, { takenAt: 200_000 }), leaving(2)];
  expect(leaversNow(both, 0, 2, 60_000, 1_000)).toEqual([]);
  expect(leaversNow(both, 1, 2, 60_000, 1_000)).toEqual([2]);
  expect(leaversNow(both, 2, 2, 60_000, 1_000)).toEqual([2, 1]);
});

test('one that does not serve goes at once', () => {
  expect(leaversNow([leaving(1, { state: 'STARTING' }), leaving(2, { state: 'NOT_READY' })], 0, 2, 60_000, 1_000)).toEqual([1, 2]);
});

test('its requests get their time before it is taken, but not more than half of the notice', () => {
  expect(leavesAt(leaving(1), 10_000)).toBe(105_000);
  expect(leavesAt(leaving(1), 600_000)).toBe(60_000);
  expect(leavesAt(leaving(1, { takenAt: undefined }), 0)).toBe(115_000);
  expect(leaversNow([leaving(1)], 0, 2, 10_000, 104_999)).toEqual([]);
  expect(leaversNow([leaving(1)], 0, 2, 10_000, 105_000)).toEqual([1]);
});
