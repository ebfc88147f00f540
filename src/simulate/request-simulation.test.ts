import { expect, test } from 'vitest';
import { aServiceSpec } from '../../test/support/builders.ts';
import { simulateRequests } from './request-simulation.ts';

const policy = { ...aServiceSpec().replicaPolicy, minReplicas: 1, maxReplicas: 4, targetQpsPerReplica: 7 };
const hour = 3_600;

function scoresOf(arrivals: readonly number[], change: Partial<typeof policy> = {}, compared: 'fixed_peak' | 'skyserve' = 'fixed_peak') {
  const trace = { arrivals, capacityQps: 10, coldStartSeconds: 60 };
  return simulateRequests({ trace, startedAt: undefined, policy: { ...policy, ...change }, compared: [compared] });
}

test('the policy of the file comes first, the bound last, and a constant load costs the same with a fixed number', () => {
  const { scores } = scoresOf(Array.from({ length: hour }, () => 14));
  expect(scores.map(({ policy: name, kind, replicaHours, late }) => ({ name, kind, replicaHours, late }))).toEqual([
    { name: 'file', kind: 'own', replicaHours: (2 * 3_000) / hour, late: 0 },
    { name: 'fixed_peak', kind: 'baseline', replicaHours: (2 * 3_000) / hour, late: 0 },
    { name: 'bound', kind: 'bound', replicaHours: (2 * 3_000) / hour, late: 0 },
  ]);
});

test('a load that max_replicas cannot serve makes the service unavailable, for baselines too', () => {
  const { scores } = scoresOf(
    Array.from({ length: hour }, () => 100),
    { maxReplicas: 2 },
  );
  expect(scores.slice(0, 2).map(({ available, late, cost }) => ({ available, late, cost }))).toEqual([
    { available: 0, late: 1, cost: 0.2 },
    { available: 0, late: 1, cost: 0.2 },
  ]);
});

test('the baseline SkyServe decides as the request rate with its delays', () => {
  const arrivals = Array.from({ length: 2 * hour }, (_, second) => (second > hour ? 35 : 7));
  const { scores, courses } = scoresOf(arrivals, {}, 'skyserve');
  const [file, skyserve] = scores;
  expect(skyserve).toEqual({ ...file, policy: 'skyserve', kind: 'baseline', summary: skyserve?.summary });
  expect(file?.late).toBeGreaterThan(0);
  expect(courses[0]?.points.at(-1)).toMatchObject({ launched: 4 });
});

test('the schedule of the file counts when the trace has dates', () => {
  const trace = { arrivals: Array.from({ length: 2 * hour }, () => 7), capacityQps: 10, coldStartSeconds: 60 };
  const schedule = [
    { cron: '0 8 * * *', timezone: 'UTC', minReplicas: 3, maxReplicas: 4 },
    { cron: '0 18 * * *', timezone: 'UTC', minReplicas: 1, maxReplicas: 4 },
  ];
  const launchedAt = (startedAt: number | undefined): readonly (number | undefined)[] => {
    const { courses } = simulateRequests({ trace, startedAt, policy: { ...policy, schedule, upscaleDelaySeconds: 20 }, compared: [] });
    return [hour / 2, (3 * hour) / 2].map((second) => courses[0]?.points.find((point) => point.second === second)?.launched);
  };
  expect(launchedAt(Date.UTC(2026, 0, 5, 7))).toEqual([1, 3]);
  expect(launchedAt(undefined)).toEqual([1, 1]);
});
