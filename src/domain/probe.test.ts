import { expect, test } from 'vitest';
import { judgeProbe, mayStepAside, nextProbeMs } from './probe.ts';
import type { ReadinessProbe } from './task.ts';

const probe: ReadinessProbe = {
  path: '/',
  headers: {},
  postData: undefined,
  initialDelaySeconds: 1_200,
  timeoutSeconds: 15,
  intervalSeconds: 10,
  failureThresholdSeconds: 180,
};

test('one failed probe takes a ready replica out', () => {
  const verdict = judgeProbe({ state: 'READY', firstProbeFailureAt: null }, false, probe, 5_000);
  expect(verdict).toEqual({ event: { type: 'probe-failed' }, firstProbeFailureAt: 5_000 });
});

test('a passed probe forgets the failures', () => {
  const verdict = judgeProbe({ state: 'NOT_READY', firstProbeFailureAt: 1 }, true, probe, 5_000);
  expect(verdict).toEqual({ event: { type: 'probe-passed' }, firstProbeFailureAt: null });
});

test.each([
  ['STARTING', 1_199_999, undefined],
  ['STARTING', 1_200_000, 'initial-delay'],
  ['NOT_READY', 179_999, undefined],
  ['NOT_READY', 180_000, 'probing'],
] as const)('%s, failing for %d ms, ends with %s', (state, failingMs, cause) => {
  const { event } = judgeProbe({ state, firstProbeFailureAt: 1_000 }, false, probe, 1_000 + failingMs);
  expect(event).toEqual(cause === undefined ? undefined : { type: 'stop-requested', cause });
});

test('late answers for a leaving replica change nothing', () => {
  expect(judgeProbe({ state: 'SHUTTING_DOWN', firstProbeFailureAt: null }, false, probe, 1).event).toBeUndefined();
});

test.each([
  [1, 1, false],
  [2, 2, true],
  [1, 2, false],
  [3, 4, true],
  [2, 4, false],
])('%d of %d serving: a slow one may step aside: %s', (serving, all, may) => {
  expect(mayStepAside(serving, all)).toBe(may);
});

test('probes come often while starting, each second when it fell out, and steadily when ready', () => {
  expect(nextProbeMs('STARTING', 0, probe)).toBe(250);
  expect(nextProbeMs('STARTING', 10_000, probe)).toBe(500);
  expect(nextProbeMs('STARTING', 60_000, probe)).toBe(1_000);
  expect(nextProbeMs('NOT_READY', 0, probe)).toBe(1_000);
  expect(nextProbeMs('READY', 0, probe)).toBe(10_000);
});
