import { expect, test } from 'vitest';
import { aReplica, aService, aServiceSpec, aTask } from '../../test/support/builders.ts';
import { aWorld, committed, ready } from '../../test/support/reconcile-world.ts';
import { budgetOf, highestPrice } from './cost-limit.ts';
import type { OfferRecord, ReplicaRecord } from './records.ts';
import { reconcile } from './reconcile.ts';

const priced = (hourlyUsd: number): Pick<ReplicaRecord, 'offer'> => {
  const offer: OfferRecord = {
    provider: 'aws',
    region: 'us-east-1',
    zone: null,
    instanceType: 'g6.xlarge',
    resources: '1x(L4:1)',
    gpus: 1,
    spot: false,
    hourlyUsd,
  };
  return { offer };
};
const launches = (limitUsd: number | undefined, replicas: readonly ReplicaRecord[]): number => {
  const budget = budgetOf(limitUsd, replicas);
  return Array.from({ length: 10 }, () => budget.allows({ version: 1, market: null })).filter(Boolean).length;
};

test('launches are priced like the newest replica with a machine', () => {
  const replicas = [ready(1, priced(0.1)), ready(2, priced(0.2))];
  expect(launches(undefined, replicas)).toBe(10);
  expect(launches(0.7, replicas)).toBe(2);
  expect(launches(0.69, replicas)).toBe(1);
  expect(launches(0.3, replicas)).toBe(0);
});

test('replicas that wait for a machine or terminate count, ended ones do not', () => {
  const others = [
    aReplica({ id: 2, state: 'PENDING' }),
    aReplica({ id: 3, state: 'SHUTTING_DOWN', ...priced(1) }),
    aReplica({ id: 4, state: 'TERMINATED', ...priced(1) }),
  ];
  expect(launches(4, [ready(1, priced(1)), ...others])).toBe(1);
});

test('a launch is priced like replicas of its version and market: others may cost more or less', () => {
  const replicas = [ready(1, { ...priced(10), version: 1 }), ready(2, { ...priced(1), version: 2, market: 'spot' })];
  const allows = (limitUsd: number, version: number, market: 'spot' | 'on-demand'): boolean =>
    budgetOf(limitUsd, replicas).allows({ version, market });
  expect([allows(12, 2, 'spot'), allows(11, 2, 'spot')]).toEqual([true, false]);
  // Its price is unknown, so one is launched to learn it.
  expect([allows(12, 2, 'on-demand'), allows(11, 2, 'on-demand')]).toEqual([true, false]);
});

test('a version and market without a price does not wait for the first price of another one', () => {
  const waiting = aReplica({ id: 1, state: 'PENDING', version: 1, market: 'spot' });
  const budget = budgetOf(4, [waiting]);
  expect(budget.allows({ version: 1, market: 'spot' })).toBe(false);
  expect(budget.allows({ version: 1, market: 'on-demand' })).toBe(true);
  expect(budget.allows({ version: 2, market: 'spot' })).toBe(true);
});

test('a machine may cost what the limit leaves after all other replicas and their asks', () => {
  const replicas = [
    ready(1, { ...priced(1), key: 'a' }),
    aReplica({ id: 2, state: 'SHUTTING_DOWN', key: 'b', ...priced(2) }),
    aReplica({ id: 3, state: 'TERMINATED', key: 'c', ...priced(50) }),
    aReplica({ id: 4, state: 'PENDING', key: 'd' }),
    aReplica({ id: 5, state: 'PROVISIONING', key: 'own', ...priced(9) }),
  ];
  const prices = new Map([
    ['d', 0.5],
    ['own', 9],
  ]);
  const most = (limitUsd: number | undefined): number | undefined =>
    highestPrice(limitUsd, replicas, 'own', (launch) => prices.get(launch) ?? 0);
  expect(most(5)).toBeCloseTo(1.5);
  expect(most(undefined)).toBeUndefined();
  // A free machine is always within the limit.
  expect(most(1)).toBeCloseTo(0);
});

test('without a known price, one replica at a time is launched', () => {
  expect(launches(4, [])).toBe(1);
  expect(launches(4, [aReplica({ id: 1, state: 'PENDING' })])).toBe(0);
});

const { replicaPolicy } = aServiceSpec();
const withLimit = (maxHourlyCost: number) => ({
  versions: new Map([
    [1, aTask({ service: aServiceSpec({ replicaPolicy: { ...replicaPolicy, minReplicas: 4, maxReplicas: 4 }, maxHourlyCost }) })],
  ]),
});

test('the limit caps launches, with one event and a field that ends with the reason', () => {
  const service = aService({ version: 1, nextReplicaId: 10 });
  const world = aWorld({ service, replicas: [ready(1, priced(1))], ...withLimit(2) });
  const decision = reconcile(world);
  expect(decision.launch.length).toBe(1);
  expect(decision.events.find(({ cause }) => cause === 'cost-limit')?.message).toBe(
    'The service is to have 4 replicas, but max_hourly_cost ($2) does not allow 2 more replicas.',
  );
  const next = committed(world, decision);
  expect(next.service.memory.costLimited).toBe(2);
  const again = reconcile(next);
  expect([again.launch.length, again.events.map(({ cause }) => cause)]).toEqual([0, []]);
  const raised = reconcile({ ...next, ...withLimit(10) });
  expect([raised.launch.length, raised.service.memory?.costLimited]).toEqual([2, undefined]);
});

test('after a backoff the event of the limit is not repeated', () => {
  const service = aService({ version: 1, nextReplicaId: 10, firstReadyAt: 1_000 });
  const limited = aWorld({ service, replicas: [ready(1, priced(1)), ready(2, priced(1))], ...withLimit(2) });
  const first = committed(limited, reconcile(limited));
  expect(first.service.memory.costLimited).toBe(2);
  const failures = [{ at: first.now, version: 1, everReady: true, readyMs: 0, killed: false }];
  const memory = { ...first.service.memory, failures };
  const ended = aReplica({ id: 2, state: 'FAILED', ...priced(1) });
  const failing = { ...first, service: { ...first.service, memory }, replicas: [ready(1, priced(1)), ended] };
  const during = reconcile(failing);
  expect([during.launch, during.events.map(({ cause }) => cause)]).toEqual([[], []]);
  const after = reconcile({ ...committed(failing, during), now: first.now + 10_000 });
  expect([after.launch.length, after.events.map(({ cause }) => cause)]).toEqual([1, []]);
  const down = reconcile({ ...first, service: { ...first.service, desired: 'down' } });
  expect(committed(first, down).service.memory.costLimited).toBeUndefined();
});

test('launches that wait for the first price are not reported as refused by the limit', () => {
  const world = aWorld({ service: aService({ version: 1, nextReplicaId: 10 }), ...withLimit(9) });
  const decision = reconcile(world);
  expect([decision.launch.length, decision.service.memory?.costLimited]).toEqual([1, undefined]);
  expect(decision.events.filter(({ cause }) => cause === 'cost-limit')).toEqual([]);
});
