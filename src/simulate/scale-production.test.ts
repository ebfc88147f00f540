import { expect, test } from 'vitest';
import { aServiceSpec } from '../../test/support/builders.ts';
import type { ReplicaPolicy } from '../domain/task.ts';
import { seededRandom } from '../shared/random.ts';
import { skyServeScaler } from './scale-baselines.ts';
import { policyScaler } from './scale-production.ts';
import { leastReplicaSeconds, runScale, type ScalePoint, type ScaleTrace } from './scale-world.ts';

const bounds = { ...aServiceSpec().replicaPolicy, minReplicas: 1, maxReplicas: 1_000 };
const capacityQps = 2;
const forecast: ReplicaPolicy = { ...bounds, autoscaler: 'forecast', targetQpsPerReplica: 1.4 };
const concurrency: ReplicaPolicy = {
  ...bounds,
  autoscaler: 'concurrency',
  targetOngoingRequestsPerReplica: 14,
  upscaleDelaySeconds: 0,
  downscaleDelaySeconds: 300,
};

/** Poisson arrivals at a rate that depends on the second (Knuth's method). */
function poisson(seconds: number, rateAt: (second: number) => number, seed: number): ScaleTrace {
  const random = seededRandom(seed);
  const draw = (rate: number): number => {
    let [count, product] = [0, random()];
    for (const limit = Math.exp(-rate); product > limit; product *= random()) count++;
    return count;
  };
  return { arrivals: Array.from({ length: seconds }, (_, second) => draw(rateAt(second))), capacityQps, coldStartSeconds: 183 };
}

/** Times at which the number rose, fell and rose again within one cold start. */
function flaps(series: readonly ScalePoint[]): readonly number[] {
  let [rose, fell] = [Number.NEGATIVE_INFINITY, false];
  return series.flatMap(({ second, launched }, index) => {
    const change = launched - (series[index - 1]?.launched ?? launched);
    if (change < 0) fell = true;
    if (change <= 0) return [];
    const isFlap = fell && second - rose <= 183;
    [rose, fell] = [second, false];
    return isFlap ? [second] : [];
  });
}

test.each([
  ['forecast', forecast],
  ['concurrency', concurrency],
])('%s does not flap at a constant load with Poisson noise', (name, policy) => {
  for (const [seed, rate] of [0.3, 2, 10, 30].entries()) {
    const result = runScale(
      poisson(20_000, () => rate, seed + 1),
      policyScaler(name, policy),
      { pointEverySeconds: 1 },
    );
    expect(flaps(result.series)).toEqual([]);
    expect(result.changesPerHour).toBeLessThan(30);
    expect(result.late).toBe(0);
  }
});

test.each([
  ['forecast', forecast],
  ['concurrency', concurrency],
])('%s keeps enough replicas for the peaks of a load with a period of two minutes', (name, policy) => {
  const trace = poisson(20_000, (second) => 5 + 4.5 * Math.sin((second / 120) * 2 * Math.PI), 1);
  const result = runScale(trace, policyScaler(name, policy), { pointEverySeconds: 10 });
  const later = result.series.filter(({ second }) => second >= 3_600);
  expect(Math.min(...later.map(({ ready }) => ready))).toBeGreaterThanOrEqual(5);
  expect(result.late).toBe(0);
});

test('with a load that grows and jumps, the forecast costs less than SkyServe, with fewer late requests', () => {
  const random = seededRandom(7);
  const levels = Array.from({ length: 300 }, () => 0.8 + 0.4 * random() + (random() < 0.05 ? 0.6 : 0));
  const rateAt = (second: number): number =>
    12 * (1 + 0.5 * Math.sin((second / 86_400) * 2 * Math.PI)) * (levels[Math.floor(second / 600)] ?? 1);
  const trace = poisson(86_400, rateAt, 2);
  const bound = leastReplicaSeconds(trace);
  const [ours, theirs] = [policyScaler('forecast', forecast), skyServeScaler()].map((kind) => runScale(trace, kind));
  expect((ours?.replicaSeconds ?? 0) / bound).toBeLessThan(1.35);
  expect(ours?.replicaSeconds).toBeLessThan(theirs?.replicaSeconds ?? 0);
  expect(ours?.late).toBeLessThan(theirs?.late ?? 0);
});

test('request_rate decides in the simulator as the SkyServe baseline does', () => {
  const trace = poisson(20_000, (second) => 5 + 4 * Math.sin(second / 1_000), 3);
  const policy: ReplicaPolicy = { ...bounds, targetQpsPerReplica: 1.4, upscaleDelaySeconds: 300, downscaleDelaySeconds: 1_200 };
  expect(runScale(trace, policyScaler('request_rate', policy))).toEqual(runScale(trace, skyServeScaler()));
});
