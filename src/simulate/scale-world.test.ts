import { expect, test } from 'vitest';
import { fixedScaler, knativeScaler, kubernetesScaler, skyServeScaler } from './scale-baselines.ts';
import { leastReplicaSeconds, runScale, type ScalerKind, type ScaleTrace } from './scale-world.ts';

const trace = (arrivals: readonly number[]): ScaleTrace => ({ arrivals, capacityQps: 10, coldStartSeconds: 100 });
const constant = (seconds: number, rate: number): number[] => Array.from({ length: seconds }, () => rate);
const scripted = (at: Readonly<Record<number, number>>): ScalerKind => ({
  name: 'scripted',
  start(_trace, replicas) {
    let now = replicas;
    return { everySeconds: 10, decide: ({ second }) => (now = at[second] ?? now) };
  },
});

test('a steady load below the capacity costs its replicas, and no request waits', () => {
  const result = runScale(trace(constant(1_600, 7)), scripted({}));
  expect(result).toMatchObject({ replicaSeconds: 1_000, requests: 7_000, late: 0, failed: 0, meanWaitSeconds: 0, changesPerHour: 0 });
});

test('a launched replica is billed at once and serves after its cold start', () => {
  const result = runScale(trace(constant(1_000, 12)), scripted({ 700: 3, 900: 2 }), { initialReplicas: 2, pointEverySeconds: 50 });
  const ready = Object.fromEntries(result.series.map((point) => [point.second, [point.launched, point.ready]]));
  expect([ready[650], ready[700], ready[750], ready[800], ready[900]]).toEqual([
    [2, 2],
    [3, 2],
    [3, 2],
    [3, 3],
    [2, 2],
  ]);
  expect(result.replicaSeconds).toBe(100 * 2 + 200 * 3 + 100 * 2);
});

test('a removed replica that starts ends before one that is ready', () => {
  const result = runScale(trace(constant(1_000, 12)), scripted({ 700: 4, 750: 3 }), { initialReplicas: 2, pointEverySeconds: 50 });
  expect(result.series.at(-1)).toMatchObject({ launched: 3, ready: 3 });
  expect(result.series.find(({ second }) => second === 750)).toMatchObject({ launched: 3, ready: 2 });
});

test('requests behind more than 5 s of backlog are late, and behind a minute they fail', () => {
  const burst = [...constant(600, 0), ...constant(1, 1_000), ...constant(99, 1)];
  const result = runScale(trace(burst), scripted({}), { initialReplicas: 1 });
  // 600 requests wait after the burst, and nine fewer after each second: more than 50 do for 62 s.
  expect(result.failed * result.requests).toBe(1_000 - 10 - 600);
  expect(result.late * result.requests).toBe(62);
});

test('the bound covers a step with its cold start', () => {
  const step = [...constant(1_500, 10), ...constant(1_000, 20)];
  // The longest window has 600 s on a grid of 10 s: the second replica is there 590 s before the step.
  expect(leastReplicaSeconds(trace(step))).toBe(310 * 1 + 1_590 * 2 + 100);
});

test.each([
  [skyServeScaler(20, 40), [2, 6]],
  [knativeScaler, [2, 6]],
  [kubernetesScaler, [2, 6]],
  [fixedScaler(1), [6, 6]],
])('$name follows a step to the usual utilisation', (kind, [before, after]) => {
  const step = [...constant(1_000, 13), ...constant(2_000, 39)];
  const { series } = runScale(trace(step), kind, { pointEverySeconds: 100 });
  expect([series[9]?.launched, series.at(-1)?.launched]).toEqual([before, after]);
});
