import { expect, test } from 'vitest';
import { aReplica } from '../../test/support/builders.ts';
import { aWorld, ready } from '../../test/support/reconcile-world.ts';
import { expectedReplica, measuredStartSeconds } from './expected-replica.ts';
import { reconcile } from './reconcile.ts';
import { transition } from './transition.ts';

test('the measured start is the median of the newest nine starts', () => {
  const slow = Array.from({ length: 5 }, () => ({ createdAt: 0, firstReadyAt: 900_000 }));
  const newest = [8, 1, 2, 3, 20, 5, 6, 7, 4].map((seconds) => ({ createdAt: 1_000, firstReadyAt: 1_000 + seconds * 1_000 }));
  expect(measuredStartSeconds([...slow, ...newest, { createdAt: 0, firstReadyAt: null }])).toBe(5);
  expect(measuredStartSeconds([{ createdAt: 0, firstReadyAt: null }])).toBeUndefined();
});

const starting = (change: Parameters<typeof aReplica>[0]) => aReplica({ firstReadyAt: null, startedAt: null, createdAt: 1_000, ...change });

test.for([
  ['PENDING', null, 'provisioning'],
  ['PROVISIONING', null, 'provisioning'],
  ['STARTING', null, 'starting'],
  ['STARTING', 3_000, 'loading'],
  ['SLEEPING', 3_000, undefined],
  ['SHUTTING_DOWN', 3_000, undefined],
  ['FAILED', 3_000, undefined],
] as const)('of a replica that is %s with its program started at %s, the phase is %s', ([state, startedAt, phase]) => {
  expect(expectedReplica([starting({ state, startedAt })], undefined)).toEqual(phase && { phase });
});

test('a sleeping replica that a request wakes is waking up until a probe passes or fails, without a time', () => {
  const asleep = ready(1, { state: 'SLEEPING', createdAt: 0, firstReadyAt: 20_000 });
  const explanation = { cause: 'wake-requested', message: 'The service is to have 1 replica.' };
  const woken = transition(asleep, { type: 'wake-requested' }, { explanation, now: 90_000, serviceKey: '0a1b2c3d' });
  const replica = { ...asleep, ...woken?.change };
  expect(expectedReplica([replica, starting({ id: 2, state: 'STARTING' })], 20)).toEqual({ phase: 'waking' });
  expect(expectedReplica([{ ...replica, firstProbeFailureAt: 95_000 }], 20)).toBeUndefined();
});

test('of several replicas, the furthest and then the oldest is expected', () => {
  const replicas = [
    starting({ id: 1, state: 'PROVISIONING', createdAt: 0 }),
    starting({ id: 2, state: 'STARTING', startedAt: 9_000, createdAt: 4_000 }),
    starting({ id: 3, state: 'STARTING', startedAt: 9_000, createdAt: 3_000 }),
  ];
  expect(expectedReplica(replicas, 20)).toEqual({ phase: 'loading', readyAt: 23_000 });
});

test('a decision expects a replica until one is ready', () => {
  const ended = ready(1, { state: 'TERMINATED', createdAt: 0, firstReadyAt: 20_000 });
  const next = starting({ id: 2, state: 'PROVISIONING', createdAt: 90_000 });
  expect(reconcile(aWorld({ replicas: [ended, next] })).expected).toEqual({ phase: 'provisioning', readyAt: 110_000 });
  expect(reconcile(aWorld({ replicas: [ready(1), next] })).expected).toBeUndefined();
});
