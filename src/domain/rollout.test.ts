import fc from 'fast-check';
import { expect, test } from 'vitest';
import { aTask, aServiceSpec } from '../../test/support/builders.ts';
import type { PlannedReplica } from './plan.ts';
import { aliveStates, isAlive, type ReplicaState } from './replica/replica-state.ts';
import { isRolledOut, isSameProgram, isSameVersion, planRollout, surgeOf, type RolloutLimits } from './rollout.ts';

const aReplica = (id: number, state: ReplicaState, version: number): PlannedReplica => ({ id, version, state });
const goal = (target: number, limits: RolloutLimits = { surge: 1, maxUnavailable: 0 }) => ({
  target,
  version: 2,
  fallback: undefined,
  limits,
});
const words = (actions: ReturnType<typeof planRollout>): readonly string[] =>
  actions.map((action) => (action.type === 'launch' ? `launch v${action.version}` : `stop ${action.replicaId}`));

test('a rollout launches one new replica, and stops an old one only when the new one is ready', () => {
  const old = [aReplica(1, 'READY', 1), aReplica(2, 'READY', 1)];
  expect(words(planRollout(old, goal(2)))).toEqual(['launch v2']);
  expect(words(planRollout([...old, aReplica(3, 'STARTING', 2)], goal(2)))).toEqual([]);
  expect(words(planRollout([...old, aReplica(3, 'READY', 2)], goal(2)))).toEqual(['stop 2', 'launch v2']);
});

test('without surge a rollout stops as many old replicas as may be unavailable first', () => {
  const old = [aReplica(1, 'READY', 1), aReplica(2, 'READY', 1), aReplica(3, 'READY', 1)];
  expect(words(planRollout(old, goal(3, { surge: 0, maxUnavailable: 1 })))).toEqual(['stop 3', 'launch v2']);
});

test('an old replica that was never ready ends at once; one with a silent machine stays', () => {
  const replicas = [aReplica(1, 'STARTING', 1), { ...aReplica(2, 'NOT_READY', 1), mustKeep: true }];
  expect(words(planRollout(replicas, goal(1)))).toEqual(['stop 1', 'launch v2']);
});

test('until the new version has worked, the old one replaces its lost replicas', () => {
  const unproven = { ...goal(3), fallback: 1 };
  const replicas = [aReplica(1, 'READY', 1), aReplica(4, 'STARTING', 2)];
  expect(words(planRollout(replicas, unproven))).toEqual(['launch v1', 'launch v1']);
  const replaced = [...replicas, aReplica(5, 'STARTING', 1), aReplica(6, 'PENDING', 1)];
  expect(words(planRollout(replaced, unproven))).toEqual([]);
  expect(words(planRollout([], unproven))).toEqual(['launch v1', 'launch v1', 'launch v1', 'launch v2']);
});

test('a replica whose machine may be silent is not stopped', () => {
  const replicas = [{ ...aReplica(1, 'NOT_READY', 1), isUnseen: true }, aReplica(2, 'READY', 2)];
  expect(words(planRollout(replicas, goal(1)))).toEqual([]);
});

test('a share of the target is rounded up', () => {
  const surges = [1, 4, 5, 9].map((target) => surgeOf({ surge: { percent: 25 } }, target));
  expect(surges).toEqual([1, 1, 2, 3]);
});

test('a rollout is complete when enough replicas are ready and none is old', () => {
  const replicas = [aReplica(1, 'SHUTTING_DOWN', 1), aReplica(2, 'READY', 2)];
  expect(isRolledOut(replicas, goal(1))).toBe(true);
  expect(isRolledOut(replicas, goal(2))).toBe(false);
  expect(isRolledOut([...replicas, aReplica(3, 'READY', 1)], goal(1))).toBe(false);
});

const limits = fc
  .record({
    surge: fc.oneof(
      fc.nat(3),
      fc.nat(100).map((percent) => ({ percent })),
    ),
    maxUnavailable: fc.nat(2),
  })
  .filter(({ surge, maxUnavailable }) => maxUnavailable > 0 || (typeof surge === 'number' ? surge : surge.percent) > 0);

/** What happens to a replica between two decisions: it becomes ready, stays, or is lost. */
const fate = fc.constantFrom('ready', 'stays', 'lost');

test('by its own actions a rollout neither exceeds the surge nor goes below the ready replicas that it promised', () => {
  const property = fc.property(
    fc.uniqueArray(fc.record({ id: fc.nat(50), version: fc.integer({ min: 1, max: 2 }), state: fc.constantFrom(...aliveStates) }), {
      selector: ({ id }) => id,
      maxLength: 8,
    }),
    fc.integer({ min: 0, max: 6 }),
    limits,
    fc.boolean(),
    fc.array(fc.array(fate, { minLength: 12, maxLength: 12 }), { maxLength: 12 }),
    (initial, target, update, isServed, rounds) => {
      let replicas: readonly PlannedReplica[] = initial;
      let nextId = 100;
      let hasWorked = false;
      const ready = (): number => replicas.filter(({ state }) => state === 'READY').length;
      const decide = (): number => {
        const before = ready();
        hasWorked ||= replicas.some(({ version, state }) => version === 2 && state === 'READY');
        const fallback = hasWorked || !isServed ? undefined : 1;
        const actions = planRollout(replicas, { target, version: 2, fallback, limits: update });
        const stopped = new Set(actions.flatMap((action) => (action.type === 'stop' ? [action.replicaId] : [])));
        const launched = actions.flatMap((action) => (action.type === 'launch' ? [aReplica(nextId++, 'PENDING', action.version)] : []));
        replicas = [...replicas.filter(({ id }) => !stopped.has(id)), ...launched];
        expect(launched.length === 0 || replicas.length <= target + surgeOf(update, target)).toBe(true);
        expect(ready()).toBeGreaterThanOrEqual(Math.min(before, target - update.maxUnavailable));
        return actions.length;
      };
      for (const fates of rounds) {
        decide();
        replicas = replicas.flatMap((replica, index): readonly PlannedReplica[] => {
          const what = fates[index % fates.length];
          return what === 'lost' ? [] : [what === 'ready' ? { ...replica, state: 'READY' } : replica];
        });
      }
      // Without further losses it ends at exactly the target, all of the new version.
      for (let pass = 0; pass < 40; pass += 1) {
        decide();
        replicas = replicas.map((replica) => ({ ...replica, state: 'READY' }));
      }
      expect(replicas.filter(({ version, state }) => version === 2 && isAlive(state)).length).toBe(target);
      expect(decide()).toBe(0);
      expect(isRolledOut(replicas, { target, version: 2 })).toBe(true);
    },
  );
  fc.assert(property, { numRuns: 500 });
});

test('versions have the same program if only the service section, the name or paths of equal files differ', () => {
  const task = aTask({ run: 'a', workdir: { kind: 'path', path: '/a' }, service: aServiceSpec() });
  const one = { version: 1, task };
  const moved = { ...task, name: 'b', workdir: { kind: 'path', path: '/b' } as const, filesVersion: 1 };
  expect(isSameProgram(one, { version: 2, task: moved })).toBe(true);
  expect(isSameVersion(one, { version: 2, task: moved })).toBe(true);
  const probed = { ...moved, service: { ...aServiceSpec(), gracefulTerminationSeconds: 5 } };
  expect([isSameProgram(one, { version: 2, task: probed }), isSameVersion(one, { version: 2, task: probed })]).toEqual([true, false]);
  const others = [
    { ...moved, run: 'b' },
    { ...moved, envs: { A: '1' } },
    { ...moved, secrets: { A: '1' } },
    { ...moved, filesVersion: 2 },
    { ...moved, service: { ...aServiceSpec(), replicaPort: 9 } },
  ];
  expect(others.map((other) => isSameProgram(one, { version: 2, task: other }))).toEqual(others.map(() => false));
});

test('a stored version equals the parsed one, which has fields that are undefined', () => {
  const task = aTask({ setup: undefined, service: aServiceSpec() });
  expect(isSameVersion({ version: 1, task: JSON.parse(JSON.stringify(task)) }, { version: 2, task: { ...task, filesVersion: 1 } })).toBe(
    true,
  );
});
