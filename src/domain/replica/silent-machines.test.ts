import fc from 'fast-check';
import { expect, test } from 'vitest';
import { slowProbeMs } from './probe.ts';
import { isSilenceWidespread, needsReplacement, secondChanceMs, silentToEnd, stillAnswers, type SilentReplica } from './silent-machines.ts';

const aSilent = (id: number, change: Partial<SilentReplica> = {}): SilentReplica => ({
  id,
  state: 'NOT_READY',
  answers: false,
  isEnding: false,
  isWidespread: false,
  respondingForMs: undefined,
  ...change,
});

const idsOf = (replicas: readonly SilentReplica[]): readonly number[] => replicas.map(({ id }) => id);

test.each([
  [0, 0, false],
  [0, 3, false],
  [1, 1, true],
  [1, 2, false],
  [1, 3, false],
  [2, 3, true],
  [10, 20, false],
  [11, 20, true],
  [54, 100, false],
  [55, 100, true],
  [99, 180, true],
])('%i of %i silent nodes: widespread is %s', (silent, all, expected) => {
  expect(isSilenceWidespread(silent, all)).toBe(expected);
});

test('a silent replica that answers is replaced only when its machine is terminating', () => {
  expect(needsReplacement(aSilent(1, { answers: true }))).toBe(false);
  expect(needsReplacement(aSilent(1, { answers: true, isEnding: true }))).toBe(true);
  expect(needsReplacement(aSilent(1))).toBe(true);
});

test('a replaced replica ends when the desired replicas are ready without it', () => {
  const replaced = [aSilent(1, { answers: true, isEnding: true }), aSilent(2), aSilent(3)];
  expect(idsOf(silentToEnd(replaced, 0, 3))).toEqual([]);
  expect(idsOf(silentToEnd(replaced, 1, 3))).toEqual([2]);
  expect(idsOf(silentToEnd(replaced, 2, 3))).toEqual([2, 3]);
  expect(idsOf(silentToEnd(replaced, 3, 3))).toEqual([2, 3, 1]);
});

test('no replica ends while the silence is widespread', () => {
  const one = aSilent(1, { isWidespread: true });
  expect(silentToEnd([one], 3, 3)).toEqual([]);
  expect(idsOf(silentToEnd([one, aSilent(2)], 3, 3))).toEqual([2]);
});

test('a machine that reports again has ten seconds before its replica ends', () => {
  expect(silentToEnd([aSilent(1, { respondingForMs: secondChanceMs - 1 })], 3, 3)).toEqual([]);
  expect(idsOf(silentToEnd([aSilent(1, { respondingForMs: secondChanceMs })], 3, 3))).toEqual([1]);
});

test('at least as many replicas remain as are missing', () => {
  const respondingForMs = fc.option(fc.nat(2 * secondChanceMs), { nil: undefined });
  const replica = fc.record({ answers: fc.boolean(), isEnding: fc.boolean(), isWidespread: fc.boolean(), respondingForMs });
  const property = fc.property(fc.array(replica, { maxLength: 8 }), fc.nat(8), fc.nat(8), (all, ready, desired) => {
    const replaced = all.map((one, id) => aSilent(id, one)).filter(needsReplacement);
    const ended = silentToEnd(replaced, ready, desired);
    expect(ready + replaced.length - ended.length).toBeGreaterThanOrEqual(Math.min(desired, ready + replaced.length));
  });
  fc.assert(property);
});

test('a replica answers while its probe is not much slower than the last one', () => {
  expect(stillAnswers({ lastPassed: true, waitingMs: undefined, lastTookMs: 0 })).toBe(true);
  expect(stillAnswers({ lastPassed: true, waitingMs: slowProbeMs - 1, lastTookMs: 0 })).toBe(true);
  expect(stillAnswers({ lastPassed: true, waitingMs: slowProbeMs, lastTookMs: 0 })).toBe(false);
  expect(stillAnswers({ lastPassed: true, waitingMs: 9_999, lastTookMs: 5_000 })).toBe(true);
  expect(stillAnswers({ lastPassed: true, waitingMs: 10_000, lastTookMs: 5_000 })).toBe(false);
  // A failed probe takes a while to reach the record. Until then the record is out of date.
  expect(stillAnswers({ lastPassed: false, waitingMs: undefined, lastTookMs: 0 })).toBe(false);
});
