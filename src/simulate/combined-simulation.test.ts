import { expect, test } from 'vitest';
import { aServiceSpec } from '../../test/support/builders.ts';
import { combinedSeconds, simulateCombined, type CombinedQuestion, type CombinedScore, type PolicyPair } from './combined-simulation.ts';
import { simulateRequests } from './request-simulation.ts';

const hours = 3;
const stepsOfHour = 12;
const full = (room: number, steps = (hours + 1) * stepsOfHour): number[] => Array.from({ length: steps }, () => room);

/** Three hours of load that doubles after the first, over zones with room. One replica serves 10 requests per second. */
function question(change: {
  readonly capacity?: readonly (readonly number[])[];
  readonly compared: readonly PolicyPair[];
  readonly base?: number;
  readonly spotPrices?: readonly number[];
}): CombinedQuestion {
  const arrivals = Array.from({ length: hours * 3_600 }, (_, second) => (second < 3_600 ? 20 : 40));
  const { capacity = [full(9), full(9)], compared, base = 0, spotPrices = capacity.map(() => 0.25) } = change;
  const policy = {
    ...aServiceSpec().replicaPolicy,
    minReplicas: 1,
    maxReplicas: 20,
    targetQpsPerReplica: 7,
    upscaleDelaySeconds: 20,
    downscaleDelaySeconds: 300,
    baseOndemandFallbackReplicas: base,
  };
  return {
    requests: { trace: { arrivals, capacityQps: 10, coldStartSeconds: 60 }, startedAt: undefined, policy, compared: [] },
    spot: {
      trace: { name: 'zones', gapSeconds: 300, zones: ['us-east-1a', 'us-west-2b'].slice(0, capacity.length), capacity },
      spotPrices,
      spare: 1,
    },
    placer: 'hedge',
    compared,
  };
}

const hedged: PolicyPair = { autoscaler: 'file', placer: 'hedge' };
const onDemand: PolicyPair = { autoscaler: 'file', placer: 'on_demand' };
const spread: PolicyPair = { autoscaler: 'file', placer: 'even_spread' };

function scoresOf(asked: CombinedQuestion): readonly CombinedScore[] {
  return simulateCombined(asked).scores;
}

test('on demand alone, the run is that over the requests', () => {
  const asked = question({ compared: [onDemand] });
  const [combined] = scoresOf(asked);
  const [alone] = simulateRequests(asked.requests).scores;
  for (const score of ['cost', 'replicaHours', 'available', 'late', 'failed', 'meanWaitSeconds'] as const)
    expect(combined?.[score]).toBeCloseTo(alone?.[score] ?? Number.NaN, 9);
  expect(combined).toMatchObject({ policy: 'file+on_demand', cut: 0, lostPerDay: 0 });
  expect(combined?.onDemandHours).toBe(combined?.replicaHours);
});

test('the placer follows the autoscaler, on spot at the price of spot', () => {
  const { scores, courses } = simulateCombined(question({ compared: [hedged, onDemand] }));
  const [ours, theirs, bound] = scores;
  const last = courses[0]?.points.at(-1);
  expect(last?.ready).toBeGreaterThanOrEqual(6);
  expect(last?.onDemand).toBe(0);
  expect(courses[0]?.points.find(({ second }) => second === 3_000)?.launched).toBeLessThan(6);
  expect(ours?.cost).toBeLessThan(0.45);
  expect(theirs?.cost).toBeGreaterThan(1);
  expect(bound?.cost).toBeCloseTo(0.25);
  expect(ours?.available).toBeGreaterThan(0.97);
});

test('a zone that is lost cuts the requests of its replicas, and the rest wait for new ones', () => {
  // Both runs without a spare hour: the second zone is lost in the middle of the third hour.
  const lost = [...full(9, 30), ...full(0, 18)];
  const [fixed, ours, alone] = scoresOf(question({ capacity: [full(9), lost], compared: [spread, hedged, onDemand] }));
  // Three of six replicas with 40 / 6 requests per second each, which take ten seconds.
  const requests = 20 * 3_000 + 40 * 7_200;
  expect(fixed?.cut).toBeCloseTo((3 * (40 / 6) * 10) / requests, 6);
  expect(fixed?.late).toBeGreaterThan(0.1);
  expect(ours?.lostPerDay).toBeGreaterThan(0);
  expect(ours?.failed).toBeLessThan(fixed?.failed ?? 0);
  expect(ours?.late).toBeLessThan((fixed?.late ?? 0) / 2);
  expect(alone).toMatchObject({ cut: 0, lostPerDay: 0 });
});

test('base replicas of the file stay on demand beside the hedge', () => {
  const { courses } = simulateCombined(question({ compared: [hedged], base: 2 }));
  const last = courses[0]?.points.at(-1);
  expect(last?.onDemand).toBe(2);
  expect(last?.ready).toBeGreaterThanOrEqual(6);
});

test('prices of zones count: the dearer zone stays empty while the cheaper one has room', () => {
  const cheap = scoresOf(question({ capacity: [full(20), full(20)], compared: [spread, hedged], spotPrices: [0.2, 0.8] }));
  const [even, ours, bound] = cheap;
  expect(even?.cost).toBeGreaterThan(0.5);
  expect(ours?.cost).toBeLessThan(even?.cost ?? 0);
  expect(bound?.cost).toBeCloseTo(0.2);
});

test('a falling number of replicas ends those that start first, on spot too', () => {
  const asked = question({ compared: [hedged] });
  const burst = asked.requests.trace.arrivals.map((_, second) => (second < 3_600 ? 20 : second < 3_640 ? 400 : 60));
  const requests = { ...asked.requests, trace: { ...asked.requests.trace, arrivals: burst, coldStartSeconds: 1_200 } };
  const policy = { ...asked.requests.policy, downscaleDelaySeconds: 20 };
  const { courses } = simulateCombined({ ...asked, requests: { ...requests, policy } });
  const at = (second: number): number | undefined => courses[0]?.points.find((point) => point.second === second)?.launched;
  expect(at(3_680)).toBeGreaterThan(20);
  // None of them is ready yet. The hedge has nine on spot, two spare ones, and others on demand until those are ready.
  expect(at(4_200)).toBeLessThan(18);
});

test('a short spot trace leaves as many seconds as it has after the first start', () => {
  expect(combinedSeconds(question({ capacity: [full(9, 12)], compared: [] }))).toBe(3_600 - 60);
  expect(combinedSeconds(question({ compared: [] }))).toBe(hours * 3_600);
});
