import fc from 'fast-check';
import { expect, test } from 'vitest';
import { aReplica as aRecord, someResources } from '../../../test/support/builders.ts';
import { aTaskWith } from '../../../test/support/reconcile-world.ts';
import { markets, type Market } from '../placement.ts';
import type { PlannedReplica } from '../plan.ts';
import { aliveStates, type ReplicaState } from '../replica/replica-state.ts';
import type { ReplicaPolicy } from '../task.ts';
import { alternativesFor, lackingMarkets, marketOf, planMarkets, wantedMarkets } from './markets.ts';

const spotResources = { order: 'any', choices: [someResources({ useSpot: true })] } as const;
const mixedResources = { order: 'any', choices: [someResources({ useSpot: true }), someResources({ cloud: 'aws' })] } as const;
const aSpotTask = (policy: Partial<ReplicaPolicy> = {}) => ({ ...aTaskWith(policy), resources: spotResources });

// By hand from the rules of SkyServe's autoscaler with fallback:
// spot = final - base; on demand = min(target, base + (dynamic: spot - ready spot)).
test.each([
  // base, dynamic, target, overprovisioned, ready spot => spot, on demand
  [0, false, 4, 0, 0, 4, 0],
  [1, false, 4, 0, 0, 3, 1],
  [2, false, 4, 1, 3, 3, 2],
  [0, true, 4, 0, 0, 4, 4],
  [0, true, 4, 0, 3, 4, 1],
  [0, true, 4, 0, 4, 4, 0],
  [0, true, 4, 0, 6, 4, 0],
  [1, true, 4, 0, 0, 3, 4],
  [1, true, 4, 0, 2, 3, 2],
  [1, true, 4, 0, 3, 3, 1],
  [0, true, 2, 2, 0, 4, 2],
  [0, true, 2, 2, 3, 4, 1],
  [0, true, 0, 0, 0, 0, 0],
  // SkyServe stops with an error when the base is more than the target.
  [2, true, 1, 0, 0, 0, 1],
])(
  'base %i, dynamic %s, target %i + %i, %i spot ready: %i spot, %i on demand',
  (base, dynamic, target, extra, readySpot, spot, onDemand) => {
    const task = aSpotTask({ baseOndemandFallbackReplicas: base, dynamicOndemandFallback: dynamic });
    expect(wantedMarkets(task, { target, desired: target + extra, readySpot })).toEqual({ spot, onDemand });
  },
);

test('without spot, or with both markets and no fallback, the search chooses the market', () => {
  const facts = { target: 2, desired: 2, readySpot: 0 };
  expect(wantedMarkets(aTaskWith(), facts)).toBeUndefined();
  expect(wantedMarkets({ ...aTaskWith(), resources: mixedResources }, facts)).toBeUndefined();
  expect(wantedMarkets({ ...aTaskWith({ dynamicOndemandFallback: true }), resources: mixedResources }, facts)).toEqual({
    spot: 2,
    onDemand: 2,
  });
});

test('an on-demand launch uses the on-demand alternatives of the file, else its spot alternatives on demand', () => {
  const cheap = {
    order: 'any',
    choices: [someResources({ useSpot: true, zone: 'a' }), someResources({ useSpot: true, zone: 'b' })],
  } as const;
  expect(alternativesFor(cheap, 'on-demand').choices).toEqual(cheap.choices.map((choice) => ({ ...choice, useSpot: false })));
  expect(alternativesFor(mixedResources, 'on-demand').choices).toEqual([mixedResources.choices[1]]);
  expect(alternativesFor(mixedResources, 'spot').choices).toEqual([mixedResources.choices[0]]);
  expect(alternativesFor(mixedResources, null)).toBe(mixedResources);
});

test('a replica has the market of its launch, else of its offer, else spot', () => {
  const offer = { provider: 'a', region: 'b', zone: null, instanceType: 'c', resources: 'd', gpus: 0, spot: false, hourlyUsd: 1 };
  expect(marketOf(aRecord({ market: 'on-demand' }))).toBe('on-demand');
  expect(marketOf(aRecord({ market: 'spot', offer }))).toBe('spot');
  expect([marketOf(aRecord({ offer })), marketOf(aRecord({ offer: { ...offer, spot: true } })), marketOf(aRecord())]).toEqual([
    'on-demand',
    'spot',
    'spot',
  ]);
});

const aReplica = (id: number, state: ReplicaState, market: Market): PlannedReplica => ({ id, version: 1, state, market });
const plan = (living: readonly PlannedReplica[], spot: number, onDemand: number, atLeast: number): readonly string[] =>
  planMarkets(living, { spot, onDemand }, { most: Number.POSITIVE_INFINITY, mostOnDemand: Number.POSITIVE_INFINITY, atLeast }).map(
    (action) => (action.type === 'launch' ? `launch ${action.market}` : `stop ${action.replicaId}`),
  );

test('missing replicas are launched in their market, on demand first', () => {
  expect(plan([aReplica(1, 'READY', 'spot')], 2, 1, 2)).toEqual(['launch on-demand', 'launch spot']);
  expect(lackingMarkets([aReplica(1, 'READY', 'on-demand')], { spot: 2, onDemand: 1 }, 2)).toEqual(['spot', 'spot']);
});

test('a surplus on-demand replica ends when a spot replica is ready, not when it is launched', () => {
  const onDemand = [aReplica(1, 'READY', 'on-demand'), aReplica(2, 'READY', 'on-demand')];
  expect(plan([...onDemand, aReplica(3, 'STARTING', 'spot'), aReplica(4, 'PENDING', 'spot')], 2, 0, 2)).toEqual([]);
  expect(plan([...onDemand, aReplica(3, 'READY', 'spot'), aReplica(4, 'PENDING', 'spot')], 2, 0, 2)).toEqual(['stop 2']);
  expect(plan([...onDemand, aReplica(3, 'READY', 'spot'), aReplica(4, 'READY', 'spot')], 2, 0, 2)).toEqual(['stop 2', 'stop 1']);
});

test('a surplus replica that is not ready ends at once', () => {
  expect(plan([aReplica(1, 'READY', 'spot'), aReplica(2, 'STARTING', 'on-demand')], 1, 0, 1)).toEqual(['stop 2']);
});

test('the market changes by a launch first, then by a stop', () => {
  const spot = [aReplica(1, 'READY', 'spot'), aReplica(2, 'READY', 'spot')];
  expect(plan(spot, 1, 1, 2)).toEqual(['launch on-demand']);
  expect(plan([...spot, aReplica(3, 'READY', 'on-demand')], 1, 1, 2)).toEqual(['stop 2']);
});

test('a plan never stops ready replicas below the number, and repeating it reaches the wanted numbers', () => {
  const replicas = fc.uniqueArray(
    fc.record({ id: fc.nat(50), state: fc.constantFrom(...aliveStates), market: fc.constantFrom(...markets) }),
    { selector: ({ id }) => id, maxLength: 10 },
  );
  const property = fc.property(replicas, fc.nat(5), fc.nat(5), fc.nat(5), (initial, spot, onDemand, needed) => {
    let living: readonly PlannedReplica[] = initial.map((one) => ({ ...one, version: 1 }));
    const atLeast = Math.min(needed, spot + onDemand);
    let nextId = 100;
    const readyCount = (): number => living.filter(({ state }) => state === 'READY').length;
    const step = (): number => {
      const before = readyCount();
      const actions = planMarkets(
        living,
        { spot, onDemand },
        { most: Number.POSITIVE_INFINITY, mostOnDemand: Number.POSITIVE_INFINITY, atLeast },
      );
      const stopped = new Set(actions.flatMap((action) => (action.type === 'stop' ? [action.replicaId] : [])));
      living = [
        ...living.filter(({ id }) => !stopped.has(id)),
        ...actions.flatMap((action) => (action.type === 'launch' ? [aReplica(nextId++, 'PENDING', action.market)] : [])),
      ];
      expect(readyCount()).toBeGreaterThanOrEqual(Math.min(before, atLeast));
      return actions.length;
    };
    for (let pass = 0; pass < 3; pass += 1) {
      step();
      expect(step()).toBe(0);
      living = living.map((replica) => ({ ...replica, state: 'READY' }));
    }
    const count = (market: Market): number => living.filter((one) => one.market === market).length;
    expect([count('spot'), count('on-demand')]).toEqual([spot, onDemand]);
  });
  fc.assert(property, { numRuns: 300 });
});
