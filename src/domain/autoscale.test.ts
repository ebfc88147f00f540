import { expect, test } from 'vitest';
import { aServiceSpec } from '../../test/support/builders.ts';
import type { ReplicaPolicy } from './task.ts';
import { type ServiceLoad, decideTarget, desiredReplicas } from './autoscale.ts';

const aPolicy = (change: Partial<ReplicaPolicy>): ReplicaPolicy => ({
  ...aServiceSpec().replicaPolicy,
  minReplicas: 0,
  maxReplicas: 4,
  targetQpsPerReplica: 1,
  ...change,
});
const aLoad = (change: Partial<ServiceLoad>): ServiceLoad => ({
  requestsInWindow: 0,
  busy: 0,
  fleet: { living: [], toCome: 1 },
  ...change,
});

test.each([
  ['one target for all', 1],
  ['a target for each accelerator', { L4: 1 }],
])('with %s, a queued or running request requires and keeps one replica', (_about, targetQpsPerReplica) => {
  const policy = aPolicy({ targetQpsPerReplica, downscaleDelaySeconds: 0 });
  expect(desiredReplicas(policy, aLoad({}))).toBe(0);
  expect(desiredReplicas(policy, aLoad({ busy: 1 }))).toBe(1);
  expect(decideTarget({ target: 0, upCount: 0, downCount: 0 }, policy, aLoad({ busy: 3 })).target).toBe(1);
  expect(decideTarget({ target: 1, upCount: 0, downCount: 0 }, policy, aLoad({ busy: 1 })).target).toBe(1);
  expect(decideTarget({ target: 1, upCount: 0, downCount: 0 }, policy, aLoad({})).target).toBe(0);
});

test("with targets by accelerator, the replicas' capacities count within the bounds", () => {
  const policy = aPolicy({ targetQpsPerReplica: { L4: 1, A100: 10 }, minReplicas: 1 });
  const fleet = { living: [10, 1], toCome: 10 };
  expect(desiredReplicas(policy, aLoad({ requestsInWindow: 0, fleet }))).toBe(1);
  expect(desiredReplicas(policy, aLoad({ requestsInWindow: 660, fleet }))).toBe(2);
  expect(desiredReplicas(policy, aLoad({ requestsInWindow: 661, fleet }))).toBe(3);
  expect(desiredReplicas(policy, aLoad({ requestsInWindow: 100_000, fleet }))).toBe(4);
});

test('a fixed service desires its number at any load', () => {
  const policy = aPolicy({ minReplicas: 3, maxReplicas: 3, targetQpsPerReplica: undefined });
  expect(desiredReplicas(policy, aLoad({ requestsInWindow: 1e6, busy: 1 }))).toBe(3);
});
