import { expect, test } from 'vitest';
import { someResources } from '../../test/support/builders.ts';
import { aTaskWith, aWorld, committed, ready, reported, stops } from '../../test/support/reconcile-world.ts';
import type { Decision, World } from './decision.ts';
import type { ReplicaRecord } from './records.ts';
import { reconcile } from './reconcile.ts';
import type { ReplicaPolicy } from './task.ts';

const versionsWith = (policy: Partial<ReplicaPolicy>): World['versions'] =>
  new Map([[1, { ...aTaskWith(policy), resources: { order: 'any', choices: [someResources({ useSpot: true })] } }]]);
const dynamic = versionsWith({ dynamicOndemandFallback: true });
const spot = (id: number, change: Partial<ReplicaRecord> = {}): ReplicaRecord => ready(id, { market: 'spot', ...change });
const onDemand = (id: number, change: Partial<ReplicaRecord> = {}): ReplicaRecord => ready(id, { market: 'on-demand', ...change });
const launches = ({ launch }: Decision): readonly (string | null)[] => launch.map(({ market }) => market);
const seen = (...ids: readonly number[]): World['reports'] => reported(Object.fromEntries(ids.map((id) => [id, {}])));

test('a service with dynamic fallback starts with both markets and ends on demand when spot is ready', () => {
  const world = aWorld({ versions: dynamic });
  const first = reconcile(world);
  expect(launches(first)).toEqual(['on-demand', 'on-demand', 'spot', 'spot']);
  expect(first.launch[0]?.reason).toBe('The service is to have 2 replicas (now 2 spot and 2 on demand).');
  const [a, b, c, d] = committed(world, first).replicas;
  expect([a?.market, b?.market, c?.market, d?.market]).toEqual(['on-demand', 'on-demand', 'spot', 'spot']);
  expect(launches(reconcile(committed(world, first)))).toEqual([]);
  const half = aWorld({ versions: dynamic, replicas: [onDemand(1), onDemand(2), spot(3)], reports: seen(1, 2, 3) });
  expect([stops(reconcile(half)), launches(reconcile(half))]).toEqual([['2 scale-down'], ['spot']]);
  const full = aWorld({ versions: dynamic, replicas: [onDemand(1), spot(3), spot(4)], reports: seen(1, 3, 4) });
  expect([stops(reconcile(full)), launches(reconcile(full))]).toEqual([['1 scale-down'], []]);
});

test('a lost spot replica is replaced by spot and on demand in the decision that ends it', () => {
  const end = { cause: 'preempted', reason: 'Its machine is gone.', killed: true } as const;
  const replicas = [spot(1), spot(2)];
  const decision = reconcile(aWorld({ versions: dynamic, replicas, reports: reported({ 1: { isGone: true, end }, 2: {} }) }));
  expect([stops(decision), launches(decision)]).toEqual([['1 preempted'], ['on-demand', 'spot']]);
});

test('an interruption notice requests both replacements, and the replica serves until one of them is ready', () => {
  const notice = { noticedAt: 99_000, reclaimedAt: 219_000, reason: 'Spot.' };
  const reports = reported({ 1: { notice }, 2: {}, 3: {} });
  const first = reconcile(aWorld({ versions: dynamic, replicas: [spot(1), spot(2)], reports }));
  expect([stops(first), launches(first)]).toEqual([[], ['on-demand', 'spot']]);
  const pending = spot(4, { state: 'STARTING', firstReadyAt: null, readySince: null });
  const second = reconcile(aWorld({ versions: dynamic, replicas: [spot(1), spot(2), onDemand(3), pending], reports }));
  expect([stops(second), launches(second)]).toEqual([['1 interruption'], []]);
});

test('recommended replicas are replaced by spot one at a time, and serve until then', () => {
  const recommendation = 'Its machine may be reclaimed.';
  const reports = reported({ 1: { recommendation }, 2: { recommendation }, 3: {} });
  for (const versions of [dynamic, versionsWith({})]) {
    const first = reconcile(aWorld({ versions, replicas: [spot(1), spot(2)], reports }));
    expect([stops(first), launches(first)]).toEqual([[], ['spot']]);
    const pending = spot(3, { state: 'STARTING', firstReadyAt: null, readySince: null });
    const second = reconcile(aWorld({ versions, replicas: [spot(1), spot(2), pending], reports }));
    expect([stops(second), launches(second)]).toEqual([[], []]);
    const third = reconcile(aWorld({ versions, replicas: [spot(1), spot(2), spot(3)], reports }));
    expect([stops(third), launches(third)]).toEqual([['1 interruption'], []]);
    expect(launches(reconcile(aWorld({ versions, replicas: [spot(2), spot(3)], reports })))).toEqual(['spot']);
  }
});

test('base on-demand replicas stay, and those of a removed policy end after spot replicas are ready', () => {
  const base = versionsWith({ baseOndemandFallbackReplicas: 1 });
  const kept = reconcile(aWorld({ versions: base, replicas: [onDemand(1), spot(2)], reports: seen(1, 2) }));
  expect([stops(kept), launches(kept)]).toEqual([[], []]);
  const spotOnly = versionsWith({});
  const replacing = reconcile(aWorld({ versions: spotOnly, replicas: [onDemand(1), spot(2)], reports: seen(1, 2) }));
  expect([stops(replacing), launches(replacing)]).toEqual([[], ['spot']]);
  const replaced = reconcile(aWorld({ versions: spotOnly, replicas: [onDemand(1), spot(2), spot(3)], reports: seen(1, 2, 3) }));
  expect([stops(replaced), launches(replaced)]).toEqual([['1 scale-down'], []]);
});

test('a file with both markets leaves the market of a launch to the search', () => {
  const resources = { order: 'any', choices: [someResources({ useSpot: true }), someResources()] } as const;
  const decision = reconcile(
    aWorld({ versions: new Map([[1, { ...aTaskWith(), resources }]]), replicas: [onDemand(1)], reports: seen(1) }),
  );
  expect([stops(decision), launches(decision)]).toEqual([[], [null]]);
});
