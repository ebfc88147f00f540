import fc from 'fast-check';
import { expect, test } from 'vitest';
import { markets, type Market } from './placement.ts';
import type { PlannedReplica } from './plan.ts';
import { aliveStates, type ReplicaState } from './replica/replica-state.ts';
import { planRollout } from './rollout.ts';
import type { MarketCounts } from './spot/markets.ts';
import { defaultUpdate } from './task.ts';

const aReplica = (id: number, state: ReplicaState, version: number, market: Market): PlannedReplica => ({ id, version, state, market });

function plan(replicas: readonly PlannedReplica[], target: number, wanted: MarketCounts, fallback?: number): readonly string[] {
  const counts = new Map([1, 2].map((version) => [version, wanted]));
  return planRollout(replicas, { target, version: 2, fallback, limits: defaultUpdate, markets: counts, atLeast: target }).map((action) =>
    action.type === 'launch' ? `launch v${action.version} ${action.market}` : `stop ${action.replicaId}`,
  );
}

test('a rollout replaces one replica at a time in each market', () => {
  const old = [aReplica(1, 'READY', 1, 'on-demand'), aReplica(2, 'READY', 1, 'spot'), aReplica(3, 'READY', 1, 'spot')];
  const wanted = { spot: 2, onDemand: 1 };
  expect(plan(old, 3, wanted)).toEqual(['launch v2 on-demand']);
  expect(plan([...old, aReplica(4, 'STARTING', 2, 'on-demand')], 3, wanted)).toEqual([]);
  // The new on-demand replica takes the place of the old one.
  expect(plan([...old, aReplica(4, 'READY', 2, 'on-demand')], 3, wanted)).toEqual(['stop 1', 'launch v2 spot']);
});

test('until the new version has worked, a lost replica of the old one is replaced in its market', () => {
  const old = [aReplica(2, 'READY', 1, 'spot'), aReplica(3, 'READY', 1, 'spot')];
  expect(plan(old, 3, { spot: 2, onDemand: 1 }, 1)).toEqual(['launch v1 on-demand', 'launch v2 on-demand']);
});

test('spot replicas that wait for a machine make no room for on-demand replicas above target and surge', () => {
  const old = [1, 2, 3].map((id) => aReplica(id, 'READY', 1, 'on-demand'));
  const wanted = { spot: 3, onDemand: 3 };
  const launches = ['launch v2 on-demand', 'launch v2 spot', 'launch v2 spot', 'launch v2 spot'];
  expect(plan(old, 3, wanted)).toEqual(launches);
  const waiting = [5, 6, 7].map((id) => aReplica(id, 'PROVISIONING', 2, 'spot'));
  expect(plan([...old, aReplica(4, 'STARTING', 2, 'on-demand'), ...waiting], 3, wanted)).toEqual([]);
});

test('by its own actions a rollout with markets keeps the ready replicas that it promised, and ends', () => {
  const replicas = fc.uniqueArray(
    fc.record({
      id: fc.nat(50),
      version: fc.constantFrom(1, 2),
      state: fc.constantFrom(...aliveStates),
      market: fc.constantFrom(...markets),
    }),
    { selector: ({ id }) => id, maxLength: 8 },
  );
  const property = fc.property(replicas, fc.nat(4), fc.nat(4), fc.boolean(), fc.boolean(), (initial, spot, base, isDynamic, isServed) => {
    const target = spot + base;
    let living: readonly PlannedReplica[] = initial;
    let nextId = 100;
    let hasWorked = false;
    const ready = (): readonly PlannedReplica[] => living.filter(({ state }) => state === 'READY');
    const decide = (): number => {
      const before = ready().length;
      hasWorked ||= ready().some(({ version }) => version === 2);
      const readySpot = ready().filter(({ market }) => market === 'spot').length;
      const wanted = { spot, onDemand: Math.min(target, base + (isDynamic ? Math.max(0, spot - readySpot) : 0)) };
      const goal = { target, version: 2, fallback: hasWorked || !isServed ? undefined : 1, limits: defaultUpdate, atLeast: target };
      const actions = planRollout(living, { ...goal, markets: new Map([1, 2].map((version) => [version, wanted])) });
      const stopped = new Set(actions.flatMap((action) => (action.type === 'stop' ? [action.replicaId] : [])));
      const isMixed = living.some(({ version }) => version === 1);
      const launched = actions.flatMap((action) =>
        action.type === 'launch' ? [aReplica(nextId++, 'PENDING', action.version, action.market ?? 'spot')] : [],
      );
      living = [...living.filter(({ id }) => !stopped.has(id)), ...launched];
      expect(ready().length).toBeGreaterThanOrEqual(Math.min(before, target));
      expect(!isMixed || launched.length === 0 || living.length <= wanted.spot + wanted.onDemand + 1).toBe(true);
      const onDemand = living.filter(({ market }) => market === 'on-demand').length;
      expect(!isMixed || launched.every(({ market, version }) => market === 'spot' || version === 1) || onDemand <= target + 1).toBe(true);
      return actions.length;
    };
    for (let pass = 0; pass < 60; pass += 1) {
      decide();
      // One replica becomes ready in each pass, the oldest first.
      const next = living.find(({ state }) => state !== 'READY');
      living = living.map((replica) => (replica === next ? { ...replica, state: 'READY' } : replica));
    }
    const count = (market: Market): number => living.filter((one) => one.market === market && one.version === 2).length;
    expect([count('spot'), count('on-demand'), living.length]).toEqual([spot, base, target]);
    expect(decide()).toBe(0);
  });
  fc.assert(property, { numRuns: 500 });
});
