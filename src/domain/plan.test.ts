import fc from 'fast-check';
import { expect, test } from 'vitest';
import { keepOrder, planReplicas, type PlannedReplica } from './plan.ts';
import { isAlive, replicaStates, type ReplicaState } from './replica/replica-state.ts';

const aReplica = (id: number, state: ReplicaState, version = 1): PlannedReplica => ({ id, version, state });
const replica = fc.record({ id: fc.nat(500), version: fc.nat(3), state: fc.constantFrom(...replicaStates) });
const replicas = fc.uniqueArray(replica, { selector: ({ id }) => id, maxLength: 40 });

test('launches missing replicas; failed and terminating replicas do not count', () => {
  const observed = [aReplica(1, 'READY'), aReplica(2, 'FAILED'), aReplica(3, 'SHUTTING_DOWN')];
  expect(planReplicas(observed, 3)).toEqual([{ type: 'launch' }, { type: 'launch' }]);
});

test('stops replicas that do not serve before replicas that serve', () => {
  const observed = [aReplica(1, 'READY'), aReplica(2, 'STARTING'), aReplica(3, 'NOT_READY'), aReplica(4, 'PENDING')];
  expect(planReplicas(observed, 1).map((action) => action.type === 'stop' && action.replicaId)).toEqual([4, 2, 3]);
});

test('among equal replicas, stops the older version first, then the higher id', () => {
  const observed = [aReplica(1, 'READY', 2), aReplica(2, 'READY', 1), aReplica(3, 'READY', 2)];
  expect(planReplicas(observed, 1)).toEqual([
    { type: 'stop', replicaId: 2 },
    { type: 'stop', replicaId: 3 },
  ]);
});

test('does not stop a replica marked mustKeep, but another one instead', () => {
  const observed = [aReplica(1, 'READY'), aReplica(2, 'READY'), { ...aReplica(3, 'READY'), mustKeep: true }];
  expect(planReplicas(observed, 2)).toEqual([{ type: 'stop', replicaId: 2 }]);
  expect(planReplicas(observed, 0).map((action) => action.type === 'stop' && action.replicaId)).toEqual([2, 1]);
});

test('stops neither an unseen NOT_READY replica nor another one instead', () => {
  const observed = [aReplica(1, 'READY'), { ...aReplica(2, 'NOT_READY'), isUnseen: true }];
  expect(planReplicas(observed, 1)).toEqual([]);
  expect(planReplicas([aReplica(1, 'READY'), aReplica(2, 'NOT_READY')], 1)).toEqual([{ type: 'stop', replicaId: 2 }]);
});

test('among replicas in the same state, stops the one with less capacity first', () => {
  const observed = [
    { ...aReplica(1, 'READY'), qps: 2 },
    { ...aReplica(2, 'READY'), qps: 10 },
    { ...aReplica(3, 'READY'), qps: 2 },
  ];
  expect(planReplicas(observed, 1).map((action) => action.type === 'stop' && action.replicaId)).toEqual([3, 1]);
  expect(keepOrder(observed).map(({ id }) => id)).toEqual([2, 1, 3]);
});

const stopsOf = (observed: readonly PlannedReplica[], target: number): readonly unknown[] =>
  planReplicas(observed, target).map((action) => action.type === 'stop' && action.replicaId);

test('among replicas in the same state, stops the dearest for its capacity first, then the least loaded', () => {
  const observed = [
    { ...aReplica(1, 'READY'), hourlyUsd: 1, inFlight: 2 },
    { ...aReplica(2, 'READY'), hourlyUsd: 3, inFlight: 9 },
    { ...aReplica(3, 'READY'), hourlyUsd: 4, qps: 8 },
    { ...aReplica(4, 'READY'), hourlyUsd: 1, inFlight: 1 },
    { ...aReplica(5, 'READY'), hourlyUsd: 1, inFlight: 2 },
  ];
  expect(stopsOf(observed, 1)).toEqual([2, 4, 5, 1]);
});

test('while requests run, the last ready replica on a machine that reports is kept', () => {
  const silent = { ...aReplica(1, 'READY'), mustKeep: true };
  const serving = { ...aReplica(2, 'READY'), inFlight: 1 };
  expect(stopsOf([silent, serving, aReplica(3, 'READY')], 1)).toEqual([3]);
  expect(stopsOf([silent, { ...serving, inFlight: 0 }, aReplica(3, 'READY')], 1)).toEqual([3, 2]);
});

test('never both launches and stops, and stops only living replicas, each once', () => {
  const property = fc.property(replicas, fc.nat(20), (observed, target) => {
    const actions = planReplicas(observed, target);
    const stopped = actions.flatMap((action) => (action.type === 'stop' ? [action.replicaId] : []));
    expect(stopped.length === 0 || stopped.length === actions.length).toBe(true);
    expect(new Set(stopped).size).toBe(stopped.length);
    for (const id of stopped) expect(observed.some((one) => one.id === id && isAlive(one.state))).toBe(true);
  });
  fc.assert(property);
});

test('a plan that was carried out reaches the target and leaves no action', () => {
  const property = fc.property(replicas, fc.nat(20), (observed, target) => {
    const actions = planReplicas(observed, target);
    const stopped = new Set(actions.flatMap((action) => (action.type === 'stop' ? [action.replicaId] : [])));
    const launched = actions.filter((action) => action.type === 'launch').map((_, index) => aReplica(1_000 + index, 'PENDING'));
    const after = [...observed.filter((one) => !stopped.has(one.id)), ...launched];
    expect(planReplicas(after, target)).toEqual([]);
  });
  fc.assert(property);
});
