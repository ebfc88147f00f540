import { expect, test } from 'vitest';
import { aReplica, aService, aServiceSpec } from '../../test/support/builders.ts';
import { aTaskWith, aWorld, committed, ready, reported, set, stops } from '../../test/support/reconcile-world.ts';
import type { Decision, World } from './decision.ts';
import type { ReplicaRecord } from './records.ts';
import { reconcile } from './reconcile.ts';

/** Version 2 with another program, beside version 1. */
function anUpdate(change: Partial<World> = {}, memory: Partial<World['service']['memory']> = {}): World {
  const service = aService({ nextReplicaId: 10, version: 2, firstReadyAt: 1_000 });
  const update = { from: 1, at: 90_000 };
  return aWorld({
    service: { ...service, memory: { ...service.memory, provenVersion: 1, update, ...memory } },
    versions: new Map([
      [1, aTaskWith()],
      [2, { ...aTaskWith(), run: 'another program' }],
    ]),
    ...change,
  });
}

const old = (id: number): ReplicaRecord => ready(id, { version: 1 });
const failing = (count: number): World['service']['memory']['failures'] =>
  Array.from({ length: count }, (_, index) => ({ at: 90_000 + index, version: 2, everReady: false, readyMs: 0, killed: false }));

test('an update launches a replica of the new version and keeps the old ones until it is ready', () => {
  const first = reconcile(anUpdate({ replicas: [old(1), old(2)] }));
  expect([first.launch.map(({ version }) => version), stops(first), set(first)]).toEqual([[2], [], ['1 serving', '2 serving']]);
  const second = reconcile(anUpdate({ replicas: [old(1), old(2), ready(3, { version: 2 })] }));
  expect([second.launch.map(({ version }) => version), stops(second)]).toEqual([[2], ['2 update']]);
  expect(set(second)).toEqual(['1 serving', '2 draining', '3 serving']);
});

test('an update that changes nothing for replicas takes them over without a launch', () => {
  const versions = new Map([
    [1, aTaskWith()],
    [2, aTaskWith({ maxReplicas: 5 })],
  ]);
  const shared = new Map(versions).set(2, { ...aTaskWith({ maxReplicas: 5 }), filesVersion: 1 });
  const decision = reconcile(anUpdate({ replicas: [old(1), old(2)], versions: shared }));
  expect(decision.adopt.map(({ replica, change }) => [replica.id, change])).toEqual([
    [1, { version: 2 }],
    [2, { version: 2 }],
  ]);
  expect([decision.launch, stops(decision)]).toEqual([[], []]);
  expect(decision.service.memory).toMatchObject({ provenVersion: 2, update: undefined });
  expect(decision.events.map(({ cause }) => cause)).toContain('updated');
});

test('a record is changed once: a replica that ends is not taken over', () => {
  const shared = new Map([
    [1, aTaskWith()],
    [2, { ...aTaskWith(), filesVersion: 1 }],
  ]);
  const end = { cause: 'program-failed', reason: 'It ended.' } as const;
  const reports = reported({ 1: { isGone: true, end } });
  const decision = reconcile(anUpdate({ replicas: [old(1), old(2)], versions: shared, reports }));
  expect([decision.adopt.map(({ replica }) => replica.id), stops(decision)]).toEqual([[2], ['1 program-failed']]);
});

test('a version of which no replica becomes ready stops the update, and the old version keeps its replicas', () => {
  const world = anUpdate({ replicas: [old(1), aReplica({ id: 3, state: 'STARTING', version: 2 })] }, { failures: failing(5) });
  const decision = reconcile(world);
  expect([decision.launch.map(({ version }) => version), stops(decision)]).toEqual([[1], ['3 update']]);
  expect(decision.service).toMatchObject({ memory: { gaveUp: true, update: { from: 1 } } });
  expect(decision.service.reason).toContain('The update to version 2 stopped, because none of its replicas became ready; version 1 stays');
  expect(decision.events.map(({ cause }) => cause)).toContain('update-stopped');
  // Later passes change nothing more, and replace a lost replica of the old version at once.
  const after = { ...committed(world, decision), replicas: [old(1), old(4)] };
  expect(reconcile(after)).toMatchObject({ launch: [], stop: [] });
  const lost = reconcile({ ...after, replicas: [old(1)] });
  expect(lost.launch.map(({ version }) => version)).toEqual([1]);
});

test('failures of the old version do not count against the new one, and delay only its own replicas', () => {
  const failures = failing(8).map((failure) => ({ ...failure, at: 99_990, version: 1 }));
  const decision = reconcile(anUpdate({ replicas: [old(1)] }, { failures }));
  expect([decision.launch.map(({ version }) => version), decision.service.memory?.gaveUp ?? false]).toEqual([[2], false]);
});

test('a stopped update neither ends the update nor fails the service, whatever happens to the old replicas', () => {
  const stopped = anUpdate({ replicas: [] }, { failures: failing(5), gaveUp: true });
  const decision = reconcile({ ...stopped, service: { ...stopped.service, state: 'READY', reason: 'It stopped.' } });
  expect(decision.launch.map(({ version }) => version)).toEqual([1, 1]);
  expect(decision.service).toMatchObject({ state: 'REPLICA_INIT', reason: 'It stopped.' });
  expect(decision.events.map(({ cause }) => cause)).not.toContain('updated');
});

test('a complete update clears the reason of an earlier stop', () => {
  const world = anUpdate({ replicas: [ready(1, { version: 2 }), ready(2, { version: 2 })] });
  const decision = reconcile({ ...world, service: { ...world.service, state: 'READY', reason: 'It stopped.' } });
  expect(decision.service).toMatchObject({ reason: null, memory: { update: undefined, provenVersion: 2, provenBefore: 1 } });
});

test('replicas with another probe are adopted one by one, each after the one before was probed', () => {
  const spec = aServiceSpec();
  const probed = { ...aTaskWith(), filesVersion: 1, service: { ...spec, readinessProbe: { ...spec.readinessProbe, path: '/other' } } };
  const versions = new Map([
    [1, aTaskWith()],
    [2, probed],
  ]);
  const first = reconcile(anUpdate({ replicas: [old(1), old(2)], versions }));
  expect([first.adopt.map(({ replica }) => replica.id), first.launch, stops(first)]).toEqual([[1], [], []]);
  expect(first.service.memory).toMatchObject({ provenVersion: 1, update: { adoptedAt: 100_000 } });
  const { intervalSeconds, timeoutSeconds } = spec.readinessProbe;
  const next = (now: number, state: 'READY' | 'NOT_READY'): Decision =>
    reconcile(
      anUpdate(
        { now, versions, replicas: [ready(1, { version: 2, state }), old(2)] },
        { update: { from: 1, at: 90_000, adoptedAt: 100_000 } },
      ),
    );
  const waitMs = (intervalSeconds + timeoutSeconds) * 1_000;
  expect([next(100_001, 'READY').adopt, next(100_001, 'READY').wakeAt]).toEqual([[], 100_000 + waitMs]);
  expect(next(100_000 + waitMs, 'NOT_READY').adopt).toEqual([]);
  const second = next(100_000 + waitMs, 'READY');
  expect([second.adopt.map(({ replica }) => replica.id), second.service.memory?.provenVersion]).toEqual([[2], 2]);
});

test('new bounds of the policy hold at once, without a decision of the autoscaler', () => {
  const service = aService();
  const autoscaler = { target: 9, upCount: 0, downCount: 0 };
  const world = aWorld({ service: { ...service, memory: { ...service.memory, autoscaler } }, load: undefined });
  expect(reconcile(world).launch).toHaveLength(2);
});
