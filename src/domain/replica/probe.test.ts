import { expect, test } from 'vitest';
import { judgeProbe, judgeSlowProbe, mayStepAside, needsProbe, nextProbeMs } from './probe.ts';
import type { ReadinessProbe } from '../task.ts';

const probe: ReadinessProbe = {
  path: '/',
  headers: {},
  postData: undefined,
  initialDelaySeconds: 1_200,
  timeoutSeconds: 15,
  intervalSeconds: 10,
  failureThresholdSeconds: 180,
};

test('failures count from when the first failed probe was sent', () => {
  const verdict = judgeProbe({ state: 'READY', firstProbeFailureAt: null }, false, probe, 20_000, 5_000);
  expect(verdict.firstProbeFailureAt).toBe(5_000);
});

test('one failed probe makes a ready replica NOT_READY', () => {
  const verdict = judgeProbe({ state: 'READY', firstProbeFailureAt: null }, false, probe, 5_000);
  expect(verdict).toEqual({ event: { type: 'probe-failed' }, firstProbeFailureAt: 5_000 });
});

test('a passed probe resets the failures', () => {
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

test('late results for a terminating replica change nothing', () => {
  expect(judgeProbe({ state: 'SHUTTING_DOWN', firstProbeFailureAt: null }, false, probe, 1).event).toBeUndefined();
});

test.each([
  [1, 1, false],
  [2, 2, true],
  [1, 2, false],
  [3, 4, true],
  [2, 4, false],
])('%d of %d serving: a slow one may leave the endpoint set: %s', (serving, all, may) => {
  expect(mayStepAside(serving, all)).toBe(may);
});

test('probes are frequent while starting, every second when NOT_READY, and regular when ready', () => {
  expect(nextProbeMs('STARTING', 0, probe)).toBe(250);
  expect(nextProbeMs('STARTING', 10_000, probe)).toBe(500);
  expect(nextProbeMs('STARTING', 60_000, probe)).toBe(1_000);
  expect(nextProbeMs('NOT_READY', 0, probe)).toBe(1_000);
  expect(nextProbeMs('READY', 0, probe)).toBe(10_000);
});

test('a slow probe of a silent replica fails, later when few others serve', () => {
  const slow = { state: 'READY', waitedMs: 2_000, isSilent: false, serving: 2, all: 2 } as const;
  expect(judgeSlowProbe(slow)).toBe('step-aside');
  expect(judgeSlowProbe({ ...slow, isSilent: true })).toBe('hung');
  expect(judgeSlowProbe({ ...slow, isSilent: true, serving: 1, all: 1 })).toBe('await');
  expect(judgeSlowProbe({ ...slow, isSilent: true, serving: 1 })).toBe('await');
  expect(judgeSlowProbe({ ...slow, waitedMs: 3_000, isSilent: true, serving: 1, all: 1 })).toBe('hung');
  expect(judgeSlowProbe({ ...slow, waitedMs: 3_000, serving: 1, all: 1 })).toBe('await');
  expect(judgeSlowProbe({ ...slow, isSilent: true, state: 'NOT_READY' })).toBe('await');
});

test('a passed probe refutes a suspicion of silence, but not a lost connection', () => {
  expect([needsProbe('silent', 1_999), needsProbe('timeout', 2_000), needsProbe('reset', 0), needsProbe('refused', 0)]).toEqual([
    false,
    true,
    true,
    true,
  ]);
});
