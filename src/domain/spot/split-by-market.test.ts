import { expect, test } from 'vitest';
import { aReplica, aServiceSpec, aTask, someResources } from '../../../test/support/builders.ts';
import { anUpdate, aWorld, ready } from '../../../test/support/reconcile-world.ts';
import type { Refusal } from '../placement.ts';
import type { UpdateProgress } from '../records.ts';
import { spotZoneOf } from './placer.ts';
import { searchOf } from './known-markets.ts';
import { splitByMarket, spotWait } from './split-by-market.ts';

const spec = aServiceSpec();
const task = aTask({
  resources: { order: 'any', choices: [someResources({ useSpot: true })] },
  service: { ...spec, replicaPolicy: { ...spec.replicaPolicy, dynamicOndemandFallback: true } },
});

const refusalIn = (zone: string, change: Partial<Refusal> = {}): Refusal => ({
  offer: {
    provider: 'aws',
    region: 'east',
    zone,
    instanceType: 'small',
    cpus: 4,
    accelerator: undefined,
    spot: true,
    hourlyUsd: 0.3,
  },
  kind: 'capacity',
  scope: 'zone',
  count: 1,
  at: 95_000,
  until: 125_000,
  reason: 'no machine is left',
  ...change,
});

/** The replicas that are to be replaced on demand, and the waiting ones, in an update whose launch began at 94 s. */
function waitWith(refusals: readonly Refusal[], change: { readonly update?: Partial<UpdateProgress>; readonly surge?: number } = {}) {
  const known = ['a', 'b'].map((zone) => ({ zone: spotZoneOf({ provider: 'aws', region: 'east', zone }), isPreempted: false }));
  const placement = { refusals, starts: [], search: searchOf(task), spotZones: known };
  const { service } = anUpdate({}, { placement, update: { from: 1, at: 90_000, ...change.update } });
  const replicas = [
    ready(1, { market: 'spot' }),
    ready(2, { market: 'spot' }),
    ready(3, { market: 'on-demand' }),
    aReplica({ id: 4, state: 'PROVISIONING', version: 2, market: 'spot', createdAt: 94_000 }),
  ];
  const { waiting, replaced } = spotWait({ service, versions: new Map([[2, task]]) }, replicas, change.surge ?? 1);
  return { waiting, replaced: replaced.map(({ id }) => id) };
}

const both = [refusalIn('a'), refusalIn('b')];
const none = { waiting: 0, replaced: [] };

test('while every zone refuses spot, as many old spot replicas as the surge are replaced on demand', () => {
  expect(waitWith(both)).toEqual({ waiting: 1, replaced: [1] });
  expect(waitWith(both, { surge: 5 })).toEqual({ waiting: 1, replaced: [1, 2] });
  expect(waitWith(both, { surge: 0 })).toEqual(none);
});

test('one refusal of the region is enough, and one zone that is open ends the wait', () => {
  expect(waitWith([refusalIn('a', { scope: 'region' })])).toEqual({ waiting: 1, replaced: [1] });
  expect(waitWith([refusalIn('a')])).toEqual(none);
});

test('refusals that ended before the launch, throttled calls and refused on-demand machines do not count', () => {
  expect(waitWith([refusalIn('a'), refusalIn('b', { at: 60_000, until: 93_000 })])).toEqual(none);
  expect(waitWith([refusalIn('a'), refusalIn('b', { kind: 'throttled' })])).toEqual(none);
  const onDemand = refusalIn('b');
  expect(waitWith([refusalIn('a'), { ...onDemand, offer: { ...onDemand.offer, spot: false } }])).toEqual(none);
});

test('a held update starts nothing on demand', () => {
  expect(waitWith(both, { update: { paused: { at: 95_000, replicas: 1, share: 0 } } })).toEqual(none);
});

test('spot replicas that wait for a machine stay wanted while on-demand replicas stand in for them', () => {
  const old = ready(1, { market: 'spot' });
  const waiting = [4, 5].map((id) => aReplica({ id, state: 'PROVISIONING', version: 2, market: 'spot' }));
  const service = { ...aWorld().service, version: 2 };
  const world = aWorld({ service, versions: new Map([[2, task]]), replicas: [old, ...waiting] });
  const facts = { launched: [2], remaining: world.replicas, moved: [], isApart: false, target: 1, desired: 1 };
  expect(splitByMarket(world, { ...facts, replaced: [] }).get(2)).toEqual({ spot: 1, onDemand: 0 });
  expect(splitByMarket(world, { ...facts, replaced: [old] }).get(2)).toEqual({ spot: 2, onDemand: 1 });
});
