import { expect, test } from 'vitest';
import { drainsAt, interruptedToDrain, type InterruptedReplica } from './interruptions.ts';

const interrupted = (
  id: number,
  reclaimedAt: number | undefined = 120_000,
  state: InterruptedReplica['state'] = 'READY',
): InterruptedReplica => ({
  id,
  state,
  notice: { noticedAt: 0, reclaimedAt },
});

const toDrain = (replicas: readonly InterruptedReplica[], readyOthers: number, graceMs = 60_000, now = 1_000): readonly number[] =>
  interruptedToDrain(replicas, { readyOthers, desired: 2, graceMs, now });

test('an interrupted replica serves until the desired replicas are ready without it', () => {
  expect(toDrain([interrupted(1)], 1)).toEqual([]);
  expect(toDrain([interrupted(1)], 2)).toEqual([1]);
});

test('of several interrupted replicas the surplus drains, those reclaimed earliest first', () => {
  const both = [interrupted(1, 200_000), interrupted(2)];
  expect(toDrain(both, 0)).toEqual([]);
  expect(toDrain(both, 1)).toEqual([2]);
  expect(toDrain(both, 2)).toEqual([2, 1]);
});

test('an interrupted replica that is not ready drains at once', () => {
  expect(toDrain([interrupted(1, 120_000, 'STARTING'), interrupted(2, 120_000, 'NOT_READY')], 0)).toEqual([1, 2]);
});

test('an interrupted replica drains before its grace period, but serves half of the notice', () => {
  expect(drainsAt(interrupted(1), 10_000)).toBe(105_000);
  expect(drainsAt(interrupted(1), 600_000)).toBe(60_000);
  expect(drainsAt({ ...interrupted(1), notice: { noticedAt: 0, reclaimedAt: undefined } }, 0)).toBe(115_000);
  expect(toDrain([interrupted(1)], 0, 10_000, 104_999)).toEqual([]);
  expect(toDrain([interrupted(1)], 0, 10_000, 105_000)).toEqual([1]);
});
