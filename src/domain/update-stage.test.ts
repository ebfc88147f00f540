import fc from 'fast-check';
import { expect, test } from 'vitest';
import { aReplica } from '../../test/support/builders.ts';
import { anUpdate, aTaskWith, committed, ready, stops } from '../../test/support/reconcile-world.ts';
import type { Decision, World } from './decision.ts';
import type { ReplicaRecord, UpdateProgress } from './records.ts';
import { reconcile } from './reconcile.ts';
import { isAlive } from './replica/replica-state.ts';
import { defaultUpdate, type UpdatePolicy } from './task.ts';
import { pausedUpdate, restartedUpdate, resumedUpdate } from './update-stage.ts';

/** An update in this mode; `replicas` are desired. */
function aStagedUpdate(
  mode: UpdatePolicy['mode'],
  change: Partial<World> & {
    readonly progress?: Partial<UpdateProgress>;
    readonly policy?: Partial<UpdatePolicy>;
    readonly target?: number;
  } = {},
): World {
  const { progress, policy, target = 2, ...rest } = change;
  const task = aTaskWith({ minReplicas: target, maxReplicas: target });
  const service = task.service && { ...task.service, update: { ...defaultUpdate, mode, ...policy } };
  const versions = new Map([
    [1, task],
    [2, { ...task, service, run: 'another program' }],
  ]);
  return anUpdate({ versions, ...rest }, { update: { from: 1, at: 90_000, mode, ...progress } });
}

const old = (id: number): ReplicaRecord => ready(id, { version: 1 });
const fresh = (id: number): ReplicaRecord => ready(id, { version: 2 });
const launched = ({ launch }: Decision): readonly number[] => launch.map(({ version }) => version);
const shares = ({ endpoints }: Decision): readonly string[] =>
  endpoints.filter(({ state }) => state === 'serving').map(({ id, share }) => `${id} ${share === undefined ? 'alike' : share.toFixed(3)}`);
const progressOf = ({ service }: Decision): UpdateProgress | undefined => service.memory?.update;

test('blue-green launches all new replicas beside the old ones, which keep all requests', () => {
  const decision = reconcile(aStagedUpdate('blue_green', { replicas: [old(1), old(2)] }));
  expect([launched(decision), stops(decision), shares(decision)]).toEqual([[2, 2], [], ['1 1.000', '2 1.000']]);
  const one = reconcile(aStagedUpdate('blue_green', { replicas: [old(1), old(2), fresh(3)], progress: { share: 0 } }));
  expect([launched(one), stops(one), shares(one)]).toEqual([[2], [], ['1 1.000', '2 1.000', '3 0.000']]);
});

test('blue-green moves all requests at once, and the old replicas stay until they have baked', () => {
  const replicas = [old(1), old(2), fresh(3), fresh(4)];
  const world = aStagedUpdate('blue_green', { replicas, progress: { share: 0 } });
  const decision = reconcile(world);
  expect([launched(decision), stops(decision), shares(decision)]).toEqual([[], [], ['1 0.000', '2 0.000', '3 1.000', '4 1.000']]);
  expect(decision.events.map(({ cause }) => cause)).toContain('update-switched');
  const after = committed(world, decision);
  const baking = reconcile({ ...after, now: world.now + 299_000 });
  expect([launched(baking), stops(baking), baking.service.memory?.provenVersion]).toEqual([[], [], undefined]);
  const baked = reconcile({ ...committed(after, baking), now: world.now + 300_000 });
  expect(stops(baked)).toEqual(['1 update', '2 update']);
});

test('blue-green replaces a lost old replica with the old version until the switch', () => {
  const decision = reconcile(aStagedUpdate('blue_green', { replicas: [old(1), fresh(3)], progress: { share: 0 } }));
  expect(launched(decision).toSorted((a, b) => a - b)).toEqual([1, 2]);
});

test('a canary gets the share of its step from one replica, and the old ones stay', () => {
  const first = reconcile(aStagedUpdate('canary', { replicas: [old(1), old(2)] }));
  expect([launched(first), stops(first), shares(first)]).toEqual([[2], [], ['1 1.000', '2 1.000']]);
  const second = reconcile(aStagedUpdate('canary', { replicas: [old(1), old(2), fresh(3)], progress: { share: 0, step: 0 } }));
  expect([launched(second), stops(second), shares(second)]).toEqual([[], [], ['1 0.950', '2 0.950', '3 0.050']]);
  expect(progressOf(second)).toMatchObject({ share: 0.05, step: 0, stepAt: 100_000 });
  expect(second.service.memory?.provenVersion).not.toBe(2);
});

test('the next step begins when this one has baked, and its share follows the ready replicas', () => {
  const replicas = [old(1), old(2), old(3), old(4), fresh(5)];
  const progress = { share: 0.05, step: 0, stepAt: 100_000 };
  const canary = (now: number) => aStagedUpdate('canary', { now, replicas, target: 4, policy: { steps: [5, 50] }, progress });
  expect(progressOf(reconcile(canary(399_999)))).toMatchObject({ step: 0 });
  const next = reconcile(canary(400_000));
  expect(progressOf(next)).toMatchObject({ share: 0.25, step: 1 });
  // A quarter of the requests needs one old replica fewer.
  expect([launched(next), stops(next)]).toEqual([[2], ['4 update']]);
});

test('after its last step a canary goes on replica by replica, and has worked with all requests', () => {
  const progress = { share: 0.5, step: 0, stepAt: 100_000 };
  const world = aStagedUpdate('canary', { now: 400_000, replicas: [old(1), old(2), fresh(3)], policy: { steps: [50] }, progress });
  const ramp = reconcile(world);
  expect([progressOf(ramp)?.step, launched(ramp), stops(ramp)]).toEqual([1, [2], ['2 update']]);
  const replicas = [old(1), fresh(3), fresh(4)];
  const last = { ...committed(world, ramp), replicas };
  const done = reconcile(last);
  expect([progressOf(done), stops(done), shares(done)]).toEqual([undefined, ['1 update'], ['3 alike', '4 alike']]);
  expect(reconcile({ ...committed(last, done), replicas: [fresh(3), fresh(4)] }).service.memory).toMatchObject({
    provenVersion: 2,
    update: undefined,
  });
});

test('a worse canary is rolled back: it gets no requests, and the old version gets its replicas back', () => {
  const canaryFault = '30 of 60 requests failed.';
  const replicas = [old(1), fresh(3)];
  const world = aStagedUpdate('canary', { replicas, canaryFault, progress: { share: 0.5, step: 2, stepAt: 99_000 } });
  const decision = reconcile(world);
  expect([launched(decision), shares(decision)]).toEqual([[1], ['1 1.000', '3 0.000']]);
  expect(decision.service).toMatchObject({ memory: { gaveUp: true, update: { share: 0 } } });
  expect(decision.service.reason).toMatch(/^The canary of version 2 was rolled back, and version 1 serves all requests. 30 of 60/);
  expect(decision.events.map(({ cause }) => cause)).toContain('update-stopped');
  const after = reconcile({ ...committed(world, decision), canaryFault: undefined, replicas: [old(1), old(5), fresh(3)] });
  expect([launched(after), stops(after)]).toEqual([[], ['3 update']]);
});

const failure = (at: number, version: number) => ({ at, version, everReady: true, readyMs: 5_000, killed: false });

test('a canary whose replicas fail after they were ready is rolled back; one failure may be an accident', () => {
  const progress = { share: 0.05, step: 0, stepAt: 91_000 };
  const decide = (failures: World['service']['memory']['failures']): Decision => {
    const world = aStagedUpdate('canary', { replicas: [old(1), old(2)], progress });
    return reconcile({ ...world, service: { ...world.service, memory: { ...world.service.memory, failures } } });
  };
  expect(progressOf(decide([failure(95_000, 2)]))?.rejected).toBeUndefined();
  expect(progressOf(decide([failure(95_000, 2), failure(98_000, 2)]))?.rejected).toBeDefined();
  const both = [failure(95_000, 2), failure(98_000, 2), failure(95_000, 1), failure(98_000, 1)];
  expect(progressOf(decide(both))?.rejected).toBeUndefined();
});

test('the same canary tries again from its beginning, with its replicas unproven', () => {
  const progress = restartedUpdate({ from: 1, at: 1, mode: 'canary', share: 0, step: 2, rejected: 'worse' }, 95_000);
  const decision = reconcile(aStagedUpdate('canary', { replicas: [old(1), old(2), fresh(3)], progress }));
  expect([shares(decision), decision.service.memory?.provenVersion]).toEqual([['1 0.950', '2 0.950', '3 0.050'], 1]);
});

test('an update without a version that worked, or without desired replicas, is rolling', () => {
  const unproven = aStagedUpdate('canary', { replicas: [aReplica({ id: 1, state: 'STARTING', version: 1 })] });
  const memory = { ...unproven.service.memory, provenVersion: 0 };
  const decision = reconcile({ ...unproven, service: { ...unproven.service, firstReadyAt: null, memory } });
  expect([launched(decision), progressOf(decision)?.share]).toEqual([[2, 2], undefined]);
});

test('a held update keeps its step, replaces lost replicas, and goes on without the time on hold', () => {
  const replicas = [old(1), fresh(3)];
  const world = aStagedUpdate('canary', { now: 900_000, replicas, progress: { share: 0.5, step: 2, stepAt: 400_000 } });
  const update = world.service.memory.update ?? { from: 1, at: 0 };
  const held = pausedUpdate(update, world.service, replicas, 500_000);
  const withUpdate = (progress: UpdateProgress): World => ({
    ...world,
    service: { ...world.service, memory: { ...world.service.memory, update: progress } },
  });
  expect([launched(reconcile(withUpdate(held))), stops(reconcile(withUpdate(held)))]).toEqual([[], []]);
  expect(launched(reconcile({ ...withUpdate(held), replicas: [old(1)] })).toSorted((a, b) => a - b)).toEqual([1, 2]);
  expect(resumedUpdate(held, 900_000)).toEqual({ from: 1, at: 90_000, mode: 'canary', share: 0.5, step: 2, stepAt: 800_000 });
  const rolling = pausedUpdate({ from: 1, at: 0 }, world.service, replicas, 500_000);
  const paused = { ...withUpdate(rolling), replicas: [old(1), old(2), fresh(3)] };
  expect([launched(reconcile(paused)), stops(reconcile(paused))]).toEqual([[], ['2 update']]);
  expect(launched(reconcile({ ...paused, replicas: [old(1)] }))).toEqual([1, 2]);
});

test('blue-green whose new replicas fail after they were ready goes back to the old ones, which are still there', () => {
  const replicas = [old(1), old(2), fresh(3)];
  const world = aStagedUpdate('blue_green', { replicas, progress: { share: 1, stepAt: 95_000 } });
  const failures = [failure(96_000, 2), failure(98_000, 2)];
  const decision = reconcile({ ...world, service: { ...world.service, memory: { ...world.service.memory, failures } } });
  expect([launched(decision), stops(decision), shares(decision)]).toEqual([[], ['3 update'], ['1 1.000', '2 1.000']]);
  expect(decision.service).toMatchObject({ memory: { gaveUp: true } });
});

test('old replicas of blue-green stay until all new ones were ready for long enough without a break', () => {
  const broken = reconcile(aStagedUpdate('blue_green', { replicas: [old(1), old(2), fresh(3)], progress: { share: 1, stepAt: 95_000 } }));
  expect([progressOf(broken)?.stepAt, stops(broken)]).toEqual([undefined, []]);
  // The time is over, but one of the new replicas is not ready at this moment.
  const late = aStagedUpdate('blue_green', { now: 900_000, replicas: [old(1), old(2), fresh(3)], progress: { share: 1, stepAt: 95_000 } });
  expect([progressOf(reconcile(late))?.stepAt, stops(reconcile(late))]).toEqual([undefined, []]);
  const replicas = [old(1), old(2), fresh(3), fresh(4)];
  const again = reconcile(aStagedUpdate('blue_green', { now: 900_000, replicas, progress: { share: 1 } }));
  expect([progressOf(again)?.stepAt, stops(again)]).toEqual([900_000, []]);
});

test('a rolled back canary changes nothing more while its last replicas wait to end', () => {
  const replicas = [old(1), fresh(3)];
  const world = aStagedUpdate('canary', { replicas, canaryFault: 'It is slow.', progress: { share: 0.5, step: 2, stepAt: 99_000 } });
  const after = committed(world, reconcile(world));
  const { service, events, launch } = reconcile({ ...after, canaryFault: undefined });
  expect([service, events, launch]).toEqual([{}, [], []]);
});

test('a canary that is held between two steps gets no further requests and replaces no replica', () => {
  const replicas = [old(1), old(2), fresh(3), fresh(4)];
  const progress = { share: 0.25, step: 1, paused: { at: 99_000, replicas: 1, share: 0.25 } };
  const decision = reconcile(aStagedUpdate('canary', { replicas, target: 4, policy: { steps: [25, 75] }, progress }));
  expect([shares(decision).slice(2), stops(decision)]).toEqual([['3 0.250', '4 0.250'], []]);
});

test('a held rolling update ends no old replica, even one that may be unavailable', () => {
  const progress = { paused: { at: 99_000, replicas: 1, share: 0 } };
  const replicas = [old(1), old(2), old(3), fresh(4)];
  const world = aStagedUpdate('rolling', { replicas, target: 4, policy: { surge: 0, maxUnavailable: 1 }, progress });
  expect([launched(reconcile(world)), stops(reconcile(world))]).toEqual([[], []]);
});

test('without desired replicas, a canary that began with some is not complete', () => {
  const world = aStagedUpdate('canary', { replicas: [], progress: { share: 0.05, step: 0 }, target: 0 });
  expect(progressOf(reconcile(world)) ?? world.service.memory.update).toMatchObject({ share: 0.05 });
  expect(reconcile(world).events.map(({ cause }) => cause)).not.toContain('updated');
});

const readyCount = ({ replicas }: World): number => replicas.filter(({ state }) => state === 'READY').length;

/** What happens to a replica between two decisions. */
const fate = fc.constantFrom('ready', 'stays', 'lost');

test('no mode exceeds its surge, promises too few ready replicas, or gives a version more than it can serve', () => {
  const property = fc.property(
    fc.constantFrom('blue_green' as const, 'canary' as const),
    fc.integer({ min: 1, max: 5 }),
    fc.record({ surge: fc.nat(2), maxUnavailable: fc.nat(1) }).filter(({ surge, maxUnavailable }) => surge + maxUnavailable > 0),
    fc.array(fc.array(fate, { minLength: 12, maxLength: 12 }), { maxLength: 10 }),
    (mode, target, limits, rounds) => {
      const policy = { ...limits, steps: [5, 25, 50], bakeSeconds: 10 };
      const replicas = Array.from({ length: target }, (_, index) => old(index + 1));
      let world: World = aStagedUpdate(mode, { target, policy, replicas });
      world = { ...world, service: { ...world.service, nextReplicaId: 100 } };
      const most = target + (mode === 'blue_green' ? Math.max(target, limits.surge) : Math.max(1, limits.surge));
      const step = (fates: readonly string[] | undefined): void => {
        const decision = reconcile(world);
        const next = committed(world, decision);
        const living = next.replicas.filter(({ state }) => isAlive(state)).length;
        expect(decision.launch.length === 0 || living <= most).toBe(true);
        expect(readyCount(next)).toBeGreaterThanOrEqual(Math.min(readyCount(world), target - limits.maxUnavailable));
        const share = next.service.memory.update?.share ?? 0;
        const readyNew = world.replicas.filter(({ version, state }) => version === 2 && state === 'READY').length;
        expect(mode === 'blue_green' || share <= readyNew / target).toBe(true);
        const evolved = next.replicas.flatMap((replica, index): readonly ReplicaRecord[] => {
          if (!isAlive(replica.state)) return [];
          const what = fates?.[index % fates.length] ?? 'ready';
          return what === 'lost' ? [] : [what === 'ready' ? ready(replica.id, { version: replica.version }) : replica];
        });
        world = { ...next, now: world.now + 11_000, replicas: evolved };
      };
      for (const fates of rounds) step(fates);
      for (let round = 0; round < 40; round += 1) step(undefined);
      expect(world.replicas.map(({ version }) => version)).toEqual(Array.from({ length: target }, () => 2));
      expect(world.service.memory).toMatchObject({ provenVersion: 2, update: undefined });
    },
  );
  fc.assert(property, { numRuns: 300 });
});
