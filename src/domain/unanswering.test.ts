import { expect, test } from 'vitest';
import { aReplica, aService } from '../../test/support/builders.ts';
import { aTaskWith, aWorld, committed, ready, reported, stops } from '../../test/support/reconcile-world.ts';
import type { World } from './decision.ts';
import { reconcile } from './reconcile.ts';
import type { ReplicaRecord } from './records.ts';
import type { ReplicaPolicy } from './task.ts';

/** A replica that was ready and fails its probes for so long, s, in the world of `aWorld`. */
const failing = (id: number, seconds: number): ReplicaRecord =>
  ready(id, { state: 'NOT_READY', readySince: null, firstProbeFailureAt: 100_000 - seconds * 1_000 });

function worldOf(replicas: readonly ReplicaRecord[], policy: Partial<ReplicaPolicy> = {}): World {
  const reports = reported(Object.fromEntries(replicas.map(({ id }) => [id, {}])));
  return aWorld({ replicas, reports, versions: new Map([[1, aTaskWith(policy)]]) });
}

const launched = (world: World): readonly string[] => reconcile(world).launch.map(({ reason }) => reason);

test('a replica whose probes have failed for 18 s gets a replacement and stays', () => {
  const world = worldOf([ready(1), failing(2, 18)]);
  expect(launched(world)).toEqual(['The probes of replica 2 have failed for 18 s; replica 10 is launched in its place.']);
  const decision = reconcile(world);
  expect(stops(decision)).toEqual([]);
  const after = reconcile(committed(world, decision));
  expect([after.launch, stops(after)]).toEqual([[], []]);
});

test('probes that have failed for a shorter time launch nothing', () => {
  expect(launched(worldOf([ready(1), failing(2, 17)]))).toEqual([]);
});

test('early_replacement: false launches nothing before the replica ends', () => {
  expect(launched(worldOf([ready(1), failing(2, 100)], { earlyReplacement: false }))).toEqual([]);
});

test('a failing replica ends when its replacement is ready', () => {
  const waiting = worldOf([ready(1), failing(2, 60), aReplica({ id: 3, state: 'STARTING', createdAt: 60_000 })]);
  expect(stops(reconcile(waiting))).toEqual([]);
  const decision = reconcile(worldOf([ready(1), failing(2, 60), ready(3, { createdAt: 60_000 })]));
  expect(stops(decision)).toEqual(['2 probing']);
  expect(decision.stop[0]?.change.reason).toBe('The probes of replica 2 have failed for 60 s, and another replica serves in its place.');
  expect(decision.launch).toEqual([]);
});

test('a replica that answers again stays, and the newest replica that is not ready ends', () => {
  const starting = aReplica({ id: 3, state: 'STARTING', createdAt: 60_000 });
  expect(stops(reconcile(worldOf([ready(1), ready(2), starting])))).toEqual(['3 scale-down']);
  expect(stops(reconcile(worldOf([ready(1), ready(2), ready(3)])))).toEqual(['3 scale-down']);
  // Another one still fails: of the two replacements, one ends.
  const more = [ready(1), ready(2), failing(3, 60), starting, aReplica({ id: 5, state: 'PENDING', createdAt: 70_000 })];
  expect(
    stops(
      reconcile(
        worldOf(
          more.map((one, index) => ({ ...one, id: index + 1 })),
          { minReplicas: 3, maxReplicas: 3 },
        ),
      ),
    ),
  ).toEqual(['5 scale-down']);
});

test('each failing replica gets a replacement while another one is ready', () => {
  const world = worldOf([ready(1), failing(2, 40), failing(3, 20)], { minReplicas: 3, maxReplicas: 3 });
  expect(launched(world)).toEqual([
    'The probes of replica 2 have failed for 40 s; replica 10 is launched in its place.',
    'The probes of replica 3 have failed for 20 s; replica 11 is launched in its place.',
  ]);
});

test('when no replica is ready, one at a time is replaced', () => {
  const world = worldOf([failing(1, 30), failing(2, 40), failing(3, 5)], { minReplicas: 3, maxReplicas: 3 });
  expect(launched(world)).toEqual(['The probes of replica 2 have failed for 40 s; replica 10 is launched in its place.']);
  const after = reconcile(committed(world, reconcile(world)));
  expect([after.launch, stops(after)]).toEqual([[], []]);
});

test('the only replica of a service is replaced early', () => {
  expect(launched(worldOf([failing(1, 20)], { minReplicas: 1, maxReplicas: 1 }))).toHaveLength(1);
});

test('an engine that wakes up from sleep is not replaced', () => {
  const policy = { minReplicas: 0, maxReplicas: 1, scaleToZero: 'sleep', targetQpsPerReplica: 1 } as const;
  const service = aService({ memory: { ...aService().memory, autoscaler: { target: 1, upCount: 0, downCount: 0 } } });
  expect(launched({ ...worldOf([failing(1, 60)], policy), service, load: undefined })).toEqual([]);
});

test('max_hourly_cost bounds early replacements too', () => {
  const offer = { provider: 'fake', region: 'r', zone: null, instanceType: 'm', resources: '', gpus: 0, spot: false, hourlyUsd: 1 };
  const priced = worldOf([ready(1, { offer }), { ...failing(2, 60), offer }]);
  const task = aTaskWith();
  const limited = (maxHourlyCost: number): World => ({
    ...priced,
    versions: new Map([[1, { ...task, ...(task.service && { service: { ...task.service, maxHourlyCost } }) }]]),
  });
  expect(launched(limited(2))).toEqual([]);
  expect(launched(limited(3))).toHaveLength(1);
});

test('a launch for more load does not name a failing replica that has its replacement', () => {
  const service = aService({ nextReplicaId: 10, memory: { ...aService().memory, autoscaler: { target: 3, upCount: 0, downCount: 0 } } });
  const replicas = [ready(1), failing(2, 60), aReplica({ id: 3, state: 'PENDING', createdAt: 60_000 })];
  const world = worldOf(replicas, { minReplicas: 2, maxReplicas: 3, targetQpsPerReplica: 1 });
  expect(launched({ ...world, service, load: undefined })).toEqual(['The service is to have 3 replicas.']);
});

const failed = { hung: 2, cutOff: 12, seconds: 70, ageSeconds: 70 };

test('a ready replica whose requests all failed for 60 s is replaced, then ends', () => {
  const world = { ...worldOf([ready(1), ready(2)]), broken: { 2: failed } };
  const text = 'Replica 2 passes its probes, but its last 14 requests failed for 70 s (2 hung, 12 broke off)';
  expect(launched(world)).toEqual([`${text}; replica 10 is launched in its place.`]);
  const decision = reconcile(world);
  expect(stops(decision)).toEqual([]);
  const after = reconcile(committed(world, decision));
  expect([after.launch, stops(after)]).toEqual([[], []]);
  const over = reconcile({ ...worldOf([ready(1), ready(2), ready(3, { createdAt: 90_000 })]), broken: { 2: failed } });
  expect([stops(over), over.stop[0]?.change.reason]).toEqual([['2 probing'], `${text}, and another replica serves in its place.`]);
});

test('requests that failed for a shorter time replace nothing', () => {
  expect(launched({ ...worldOf([ready(1), ready(2)]), broken: { 2: { ...failed, seconds: 59 } } })).toEqual([]);
});

test('requests that fail at all replicas replace none', () => {
  expect(launched({ ...worldOf([ready(1), ready(2)]), broken: { 1: { ...failed, seconds: 5 }, 2: failed } })).toEqual([]);
});

test('of two replicas with failing requests, the one that fails for longer is replaced first', () => {
  const replicas = [ready(1), ready(2), ready(3)];
  const world = {
    ...worldOf(replicas, { minReplicas: 3, maxReplicas: 3 }),
    broken: { 1: failed, 3: { ...failed, seconds: 90, ageSeconds: 90 } },
  };
  expect(launched(world)).toEqual([
    'Replica 3 passes its probes, but its last 14 requests failed for 90 s (2 hung, 12 broke off); replica 10 is launched in its place.',
  ]);
});

test('early_replacement: false keeps a replica whose requests fail', () => {
  expect(launched({ ...worldOf([ready(1), ready(2)], { earlyReplacement: false }), broken: { 2: failed } })).toEqual([]);
});

test('a replica whose requests fail while its replacement starts gets no second one, and stays when they succeed', () => {
  const replicas = [ready(1), ready(2), aReplica({ id: 3, state: 'STARTING', createdAt: 90_000 })];
  const world = { ...worldOf(replicas), broken: { 2: { ...failed, seconds: 75 } } };
  expect([launched(world), stops(reconcile(world))]).toEqual([[], []]);
  expect(stops(reconcile(worldOf(replicas)))).toEqual(['3 scale-down']);
});

test('a failing replica whose provider has not described its machine stays beside its replacement', () => {
  const world = worldOf([ready(1), failing(2, 60), ready(3, { createdAt: 60_000 })]);
  const decision = reconcile({ ...world, reports: reported({ 1: {}, 2: { machine: { type: 'unseen' } }, 3: {} }) });
  expect([stops(decision), decision.launch]).toEqual([[], []]);
});
