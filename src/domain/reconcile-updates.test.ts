import fc from 'fast-check';
import { expect, test } from 'vitest';
import { aReplica, aService, aServiceSpec } from '../../test/support/builders.ts';
import { anUpdate, aTaskWith, aWorld, committed, ready, reported, set, stops } from '../../test/support/reconcile-world.ts';
import type { Decision, World } from './decision.ts';
import type { ReplicaRecord } from './records.ts';
import { aliveStates } from './replica/replica-state.ts';
import { reconcile } from './reconcile.ts';

/** Version 2 with the program of version 1 and another probe. */
function probedVersions(): World['versions'] {
  const spec = aServiceSpec();
  const service = { ...spec, readinessProbe: { ...spec.readinessProbe, path: '/other' } };
  return new Map([
    [1, aTaskWith()],
    [2, { ...aTaskWith(), filesVersion: 1, service }],
  ]);
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
  expect(decision.change.map(({ replica, change }) => [replica.id, change])).toEqual([
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
  expect([decision.change.map(({ replica }) => replica.id), stops(decision)]).toEqual([[2], ['1 program-failed']]);
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

test('a stopped update at zero replicas stays stopped, and the service sleeps', () => {
  const asleep = aTaskWith({ minReplicas: 0, targetQpsPerReplica: 1 });
  const versions = new Map([
    [1, asleep],
    [2, { ...asleep, run: 'another program' }],
  ]);
  const stopped = anUpdate({ replicas: [], versions }, { gaveUp: true, autoscaler: { target: 0, upCount: 0, downCount: 0 } });
  const decision = reconcile({ ...stopped, service: { ...stopped.service, state: 'READY', reason: 'It stopped.' } });
  expect(decision).toMatchObject({ launch: [], service: { state: 'NO_REPLICA', reason: 'It stopped.' } });
  expect(decision.events.map(({ cause }) => cause)).not.toContain('updated');
});

test('a complete update clears the reason of an earlier stop', () => {
  const world = anUpdate({ replicas: [ready(1, { version: 2 }), ready(2, { version: 2 })] });
  const decision = reconcile({ ...world, service: { ...world.service, state: 'READY', reason: 'It stopped.' } });
  expect(decision.service).toMatchObject({ reason: null, memory: { update: undefined, provenVersion: 2, provenBefore: 1 } });
});

test('replicas with another probe are adopted one by one, each after the one before was probed', () => {
  const versions = probedVersions();
  const first = reconcile(anUpdate({ replicas: [old(1), old(2)], versions }));
  expect([first.change.map(({ replica }) => replica.id), first.launch, stops(first)]).toEqual([[1], [], []]);
  expect(first.service.memory).toMatchObject({ provenVersion: 1, update: { adoptedAt: 100_000 } });
  const { intervalSeconds, timeoutSeconds } = aServiceSpec().readinessProbe;
  const next = (now: number, state: 'READY' | 'NOT_READY'): Decision =>
    reconcile(
      anUpdate(
        { now, versions, replicas: [ready(1, { version: 2, state }), old(2)] },
        { update: { from: 1, at: 90_000, adoptedAt: 100_000 } },
      ),
    );
  const waitMs = (intervalSeconds + timeoutSeconds) * 1_000;
  expect([next(100_001, 'READY').change, next(100_001, 'READY').wakeAt]).toEqual([[], 100_000 + waitMs]);
  expect(next(100_000 + waitMs, 'NOT_READY').change).toEqual([]);
  const second = next(100_000 + waitMs, 'READY');
  expect([second.change.map(({ replica }) => replica.id), second.service.memory?.provenVersion]).toEqual([[2], 2]);
});

test('a wrong probe takes one replica, and no other is launched or stopped for it', () => {
  const replicas = [ready(1, { version: 2, state: 'NOT_READY' }), old(2)];
  const world = anUpdate({ replicas, versions: probedVersions() }, { update: { from: 1, at: 90_000, adoptedAt: 90_000 } });
  expect(reconcile(world)).toMatchObject({ launch: [], change: [], stop: [] });
});

test('after the guard gave up on another probe, lost replicas are replaced with the earlier one', () => {
  const world = anUpdate({ replicas: [old(2)], versions: probedVersions() }, { gaveUp: true, failures: failing(9) });
  const decision = reconcile(world);
  expect([decision.launch.map(({ version }) => version), decision.change, stops(decision)]).toEqual([[1], [], []]);
});

test('a decision that was carried out is followed by no launch, whatever the versions are', () => {
  const replica = fc.record({
    id: fc.integer({ min: 1, max: 9 }),
    version: fc.integer({ min: 1, max: 2 }),
    state: fc.constantFrom(...aliveStates),
  });
  const property = fc.property(
    fc.uniqueArray(replica, { selector: ({ id }) => id, maxLength: 5 }),
    fc.constantFrom(
      probedVersions(),
      anUpdate().versions,
      new Map([...probedVersions()].map(([version]) => [version, { ...aTaskWith(), filesVersion: 1 }])),
    ),
    fc.boolean(),
    fc.integer({ min: 0, max: 2 }),
    (given, versions, gaveUp, provenVersion) => {
      const replicas = given.map(({ state, ...one }) =>
        state === 'READY' || state === 'NOT_READY' ? ready(one.id, { ...one, state }) : aReplica({ ...one, state }),
      );
      let world = anUpdate({ replicas, versions }, { gaveUp: gaveUp && provenVersion < 2, provenVersion });
      for (let pass = 0; pass < 4; pass += 1) world = committed(world, reconcile(world));
      const { launch, change } = reconcile(world);
      expect([launch, change]).toEqual([[], []]);
    },
  );
  fc.assert(property, { numRuns: 300 });
});

test('new bounds of the policy hold at once, without a decision of the autoscaler', () => {
  const service = aService();
  const autoscaler = { target: 9, upCount: 0, downCount: 0 };
  const world = aWorld({ service: { ...service, memory: { ...service.memory, autoscaler } }, load: undefined });
  expect(reconcile(world).launch).toHaveLength(2);
});
