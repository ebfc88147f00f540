import fc from 'fast-check';
import { expect, test } from 'vitest';
import { aReplica, aService } from '../../test/support/builders.ts';
import { aTaskWith, aWorld, address, committed, ready, reported, set, stops } from '../../test/support/reconcile-world.ts';
import type { World } from './decision.ts';
import { reconcile } from './reconcile.ts';
import type { ReplicaReport } from './replica/replica-report.ts';
import { isAlive, isEnded, replicaStates, type EndCause } from './replica/replica-state.ts';

const leftovers = { reason: 'aws cannot be searched: no answer.' };

test('one decision stops, counts and replaces a failed replica and drops its endpoint', () => {
  const end = { cause: 'program-failed', reason: 'Its run ended with exit code 1.' } as const;
  const world = aWorld({ replicas: [ready(1), ready(2)], reports: reported({ 1: { isGone: true, end } }) });
  const decision = reconcile(world);
  expect(stops(decision)).toEqual(['1 program-failed']);
  expect(decision.stop[0]?.change.reason).toBe(end.reason);
  // It was ready for more than a minute: an accident, which causes no delay.
  expect([decision.launch.length, decision.service.memory?.failures.length]).toEqual([1, 1]);
  expect(set(decision)).toEqual(['1 gone', '2 serving']);
});

test('a replica ended by a user is replaced at once and is no failure', () => {
  const decision = reconcile(aWorld({ replicas: [ready(1, { endRequestedAt: 5 }), ready(2)] }));
  expect([stops(decision), decision.launch.length, decision.service.memory?.failures]).toEqual([['1 user'], 1, []]);
});

test('a replica with an unreadable record is kept until a user ends it', () => {
  const unknown = ready(3, { state: 'UNKNOWN' });
  expect(stops(reconcile(aWorld({ replicas: [ready(1), ready(2), unknown] })))).toEqual([]);
  expect(stops(reconcile(aWorld({ replicas: [ready(1), ready(2), { ...unknown, endRequestedAt: 5 }] })))).toEqual(['3 user']);
});

test('an interrupted replica is replaced at once and serves until the replacement is ready', () => {
  const notice = { noticedAt: 99_000, reclaimedAt: 219_000, reason: 'Spot.' };
  const reports = reported({ 1: { notice }, 2: {}, 3: {} });
  const first = reconcile(aWorld({ replicas: [ready(1), ready(2)], reports }));
  expect([stops(first), first.launch.length, set(first)]).toEqual([[], 1, ['1 serving', '2 serving']]);
  const second = reconcile(aWorld({ replicas: [ready(1), ready(2), ready(3)], reports }));
  expect([stops(second), second.launch.length]).toEqual([['1 interruption'], 0]);
  expect(second.stop[0]?.change.reason).toBe('Spot.');
  expect(set(second)).toEqual(['1 draining', '2 serving', '3 serving']);
});

test('a silent replica that does not answer is replaced first, then ends', () => {
  const machine = { type: 'silent', cause: 'machine-lost', reason: 'Silent.', isWidespread: false, isEnding: false } as const;
  const replicas = [ready(1, { state: 'NOT_READY' }), ready(2)];
  const reports = reported({ 1: { machine, answers: false, probe: 'unanswered' }, 2: {}, 3: {} });
  const first = reconcile(aWorld({ replicas, reports }));
  expect([stops(first), first.launch.length]).toEqual([[], 1]);
  const widespread = reported({ 1: { machine: { ...machine, isWidespread: true }, answers: false }, 2: {}, 3: {} });
  expect(stops(reconcile(aWorld({ replicas: [...replicas, ready(3)], reports: widespread })))).toEqual([]);
  expect(stops(reconcile(aWorld({ replicas: [...replicas, ready(3)], reports })))).toEqual(['1 machine-lost']);
});

test('surplus replicas are not stopped until every provider has been listed', () => {
  const replicas = [ready(1), ready(2), ready(3)];
  const reports = reported({ 1: {}, 2: {}, 3: {} });
  expect(stops(reconcile(aWorld({ replicas, reports, isInventoryKnown: false })))).toEqual([]);
  expect(stops(reconcile(aWorld({ replicas, reports })))).toEqual(['3 scale-down']);
});

test('with an incomplete load report, the service scales up but not down', () => {
  const policy = { minReplicas: 1, maxReplicas: 5, targetQpsPerReplica: 1, upscaleDelaySeconds: 20, downscaleDelaySeconds: 20 };
  const versions = new Map([[1, aTaskWith(policy)]]);
  const service = aService({ memory: { ...aService().memory, autoscaler: { target: 2, upCount: 0, downCount: 0 } } });
  const replicas = [ready(1), ready(2)];
  const load = { requestsInWindow: 0, busy: 0, isComplete: false };
  expect(stops(reconcile(aWorld({ versions, service, replicas, load })))).toEqual([]);
  expect(stops(reconcile(aWorld({ versions, service, replicas, load: { ...load, isComplete: true } })))).toEqual(['2 scale-down']);
  const more = reconcile(aWorld({ versions, service, replicas, load: { ...load, requestsInWindow: 200 } }));
  expect([more.launch.length, more.events.map(({ cause }) => cause)]).toEqual([2, ['autoscale', 'derived']]);
});

test('the schedule gives the bounds at once, without a new load report', () => {
  const entry = { timezone: 'UTC', minReplicas: 3, maxReplicas: 3 };
  const world = (cron: string) => aWorld({ versions: new Map([[1, aTaskWith({ schedule: [{ ...entry, cron }] })]]), load: undefined });
  // The world's time is 100 s after midnight of a Thursday.
  expect(reconcile(world('1 0 * * thu')).launch.length).toBe(3);
  // A minute earlier the entry of the week before holds.
  expect(reconcile({ ...world('1 0 * * thu'), now: 50_000 }).launch.length).toBe(3);
});

test('bounds that change the target are an event, once', () => {
  const autoscaler = { target: 5, upCount: 0, downCount: 0 };
  const service = aService({ memory: { ...aService().memory, autoscaler }, nextReplicaId: 10 });
  const world = aWorld({ service, load: undefined });
  const decision = reconcile(world);
  const reason = 'The bounds are 2 to 2 replicas: from 5 to 2 replicas.';
  expect([decision.events[0]?.message, decision.service.memory?.scaled]).toEqual([reason, { at: world.now, reason }]);
  const again = reconcile(committed(world, decision));
  expect([again.events.filter(({ cause }) => cause === 'autoscale'), again.launch]).toEqual([[], []]);
});

test('the forecast plans for the median cold start of the replicas', () => {
  const policy = { minReplicas: 1, maxReplicas: 50, autoscaler: 'forecast', targetQpsPerReplica: 7 } as const;
  const replicas = [60_000, 5_000, 90_000].map((ms, index) => ready(index + 1, { createdAt: 0, firstReadyAt: ms }));
  const detail = { recent: Array.from({ length: 60 }, () => 500), ongoing: { minute: 0, moment: 0 }, queued: 0, inFlight: {} };
  const load = { requestsInWindow: 3_000, busy: 0, isComplete: true, detail };
  const decision = reconcile(aWorld({ versions: new Map([[1, aTaskWith(policy)]]), replicas, load }));
  expect(decision.service.memory?.autoscaler?.target).toBeGreaterThanOrEqual(6);
  expect(decision.nextLoadMs).toBe(10_000);
});

test("after failures, the next launch is delayed until the decision's wakeAt", () => {
  const failure = { at: 99_900, everReady: false, readyMs: 0, killed: false };
  const service = aService({ memory: { ...aService().memory, failures: [failure, failure] } });
  const decision = reconcile(aWorld({ service }));
  expect([decision.launch, decision.wakeAt !== undefined && decision.wakeAt > 100_000]).toEqual([[], true]);
});

test('a service that gave up reports the reason and launches nothing', () => {
  const failures = Array.from({ length: 10 }, (_, index) => ({ at: 90_000 + index, everReady: false, readyMs: 0, killed: false }));
  const failed = aReplica({ id: 4, state: 'FAILED', endCause: 'program-failed', reason: 'Exit code 1.', endedAt: 5 });
  const service = aService({ memory: { ...aService().memory, failures } });
  const decision = reconcile(aWorld({ service, replicas: [failed] }));
  expect([decision.launch, decision.service.state]).toEqual([[], 'FAILED']);
  expect(decision.service.reason).toContain('Replica 4: Exit code 1.');
});

test('a service that becomes ready after it gave up drops that reason', () => {
  const failures = Array.from({ length: 10 }, (_, index) => ({ at: 90_000 + index, everReady: false, readyMs: 0, killed: false }));
  const memory = { ...aService().memory, initialised: true, failures, gaveUp: true };
  const decision = reconcile(aWorld({ service: aService({ state: 'FAILED', memory }), replicas: [ready(1)] }));
  expect(decision.service).toMatchObject({ state: 'READY', reason: null, memory: { gaveUp: false } });
  expect(decision.events.filter(({ to }) => to === 'READY').map(({ cause }) => cause)).toEqual(['derived']);
});

test('a replica of an unreadable version continues to serve', () => {
  expect(set(reconcile(aWorld({ versions: new Map(), replicas: [ready(1)] })))).toEqual(['1 serving']);
});

test('a removed service stops its replicas, searches the providers, then drops its records', () => {
  const service = aService({ desired: 'down', state: 'SHUTTING_DOWN' });
  const first = reconcile(aWorld({ service, replicas: [ready(1), aReplica({ id: 2 })] }));
  expect([stops(first), first.launch, first.removal]).toEqual([['1 service-down', '2 service-down'], [], undefined]);
  const gone = ready(1, { state: 'TERMINATED', address: null });
  expect(reconcile(aWorld({ service, replicas: [gone] })).removal).toBe('search');
  expect(reconcile(aWorld({ service, replicas: [gone], leftovers })).removal).toBe('search');
  expect(reconcile(aWorld({ service, replicas: [gone], leftovers })).service.reason).toBe(leftovers.reason);
  expect(reconcile(aWorld({ service, replicas: [gone], leftovers: 'none' })).removal).toMatchObject({ cause: 'down' });
});

test('a forced removal drops the records although machines may remain', () => {
  const service = aService({ desired: 'down', purge: true, state: 'FAILED_CLEANUP' });
  const left = ready(1, { state: 'FAILED_CLEANUP', endCause: 'service-down' });
  expect(reconcile(aWorld({ service, replicas: [left] })).removal).toBe('search');
  const dropped = reconcile(aWorld({ service, replicas: [left], leftovers })).removal;
  expect(dropped).toMatchObject({ message: expect.stringContaining('machines of 1 replica may still exist') });
});

test("the first ready replica sets the service's firstReadyAt", () => {
  const { service } = reconcile(aWorld({ replicas: [ready(1, { firstReadyAt: 7 }), ready(2, { firstReadyAt: 9 })] }));
  expect(service).toMatchObject({ state: 'READY', firstReadyAt: 7 });
});

/** Causes that executors and providers report. */
const reportedCauses = [
  'program-failed',
  'initial-delay',
  'probing',
  'provision',
  'preempted',
  'machine-lost',
] as const satisfies readonly EndCause[];

const someReport = fc.record({
  probe: fc.constantFrom('unknown', 'passed', 'slow', 'failed', 'unanswered'),
  isGone: fc.boolean(),
  answers: fc.boolean(),
  machine: fc.oneof(
    fc.constantFrom({ type: 'unseen' } as const, { type: 'reporting' } as const),
    fc.record({
      type: fc.constantFrom('silent', 'back'),
      since: fc.nat(100_000),
      cause: fc.constantFrom('machine-lost', 'preempted'),
      reason: fc.constant('Silent.'),
      isWidespread: fc.boolean(),
      isEnding: fc.boolean(),
    }),
  ),
  notice: fc.option(
    fc.record({ noticedAt: fc.nat(100_000), reclaimedAt: fc.option(fc.nat(300_000), { nil: undefined }), reason: fc.constant('Spot.') }),
    {
      nil: undefined,
    },
  ),
  recommendation: fc.option(fc.constant('It may be reclaimed.'), { nil: undefined }),
  end: fc.option(fc.record({ cause: fc.constantFrom(...reportedCauses), reason: fc.constant('It ended.'), killed: fc.boolean() }), {
    nil: undefined,
    freq: 6,
  }),
}) satisfies fc.Arbitrary<ReplicaReport>;

const someReplica = fc
  .record({ id: fc.integer({ min: 1, max: 9 }), state: fc.constantFrom(...replicaStates), everReady: fc.boolean(), isAsked: fc.boolean() })
  .map(({ id, state, everReady, isAsked }) =>
    aReplica({
      id,
      state,
      address: isEnded(state) || state === 'PENDING' ? null : address,
      firstReadyAt: everReady || state === 'READY' ? 1_000 : null,
      readySince: state === 'READY' ? 1_000 : null,
      endCause: isAlive(state) ? null : 'user',
      endRequestedAt: isAsked ? 5 : null,
    }),
  );

const someWorld = fc
  .record({
    replicas: fc.uniqueArray(someReplica, { selector: ({ id }) => id, maxLength: 9 }),
    reports: fc.array(someReport, { minLength: 9, maxLength: 9 }),
    desired: fc.constantFrom('up', 'up', 'up', 'down'),
    purge: fc.boolean(),
    min: fc.nat(4),
    extra: fc.nat(3),
    load: fc.option(fc.record({ requestsInWindow: fc.nat(600), busy: fc.nat(3), isComplete: fc.boolean() }), { nil: undefined }),
    isInventoryKnown: fc.boolean(),
    leftovers: fc.constantFrom<World['leftovers']>('unknown', 'none', leftovers),
    failures: fc.array(
      fc.record({ at: fc.integer({ min: 90_000, max: 100_000 }), everReady: fc.boolean(), readyMs: fc.nat(100_000), killed: fc.boolean() }),
      {
        maxLength: 6,
      },
    ),
  })
  .map(({ replicas, reports, desired, purge, min, extra, failures, ...rest }) =>
    aWorld({
      ...rest,
      replicas: replicas.toSorted((a, b) => a.id - b.id),
      reports: new Map(reports.map((report, index) => [index + 1, report])),
      service: aService({ nextReplicaId: 10, desired, purge, memory: { ...aService().memory, failures } }),
      versions: new Map([[1, aTaskWith({ minReplicas: min, maxReplicas: min + extra, targetQpsPerReplica: extra > 0 ? 1 : undefined })]]),
    }),
  );

test('the same world gives the same decision and is not changed', () => {
  fc.assert(
    fc.property(someWorld, (world) => {
      const before = structuredClone(world);
      expect(reconcile(world)).toEqual(reconcile(before));
      expect(world).toEqual(before);
    }),
  );
});

test('after a committed decision, the next one launches and stops nothing more', () => {
  fc.assert(
    fc.property(someWorld, (world) => {
      const first = reconcile(world);
      const second = reconcile(committed(world, first));
      expect([second.launch, second.stop.filter(({ change }) => change.endCause !== 'interruption')]).toEqual([[], []]);
    }),
  );
});

test('a decision never launches more than desired, and nothing while replicas are surplus', () => {
  fc.assert(
    fc.property(someWorld, (world) => {
      const decision = reconcile(world);
      const policy = world.versions.get(1)?.service?.replicaPolicy;
      const isLimited = world.service.desired === 'down' || stops(decision).some((stop) => stop.endsWith('scale-down'));
      expect(decision.launch.length).toBeLessThanOrEqual(isLimited ? 0 : (policy?.maxReplicas ?? 0));
    }),
  );
});

test('a replica stops at most once, and never while it is terminating', () => {
  fc.assert(
    fc.property(someWorld, (world) => {
      const { stop } = reconcile(world);
      expect(new Set(stop.map(({ replica }) => replica.id)).size).toBe(stop.length);
      expect(stop.every(({ replica: { state } }) => isAlive(state) || state === 'UNKNOWN')).toBe(true);
    }),
  );
});

test('the endpoint set serves no replica that is terminating, gone, or failed its probe', () => {
  fc.assert(
    fc.property(someWorld, (world) => {
      const decision = reconcile(world);
      const stopped = new Set(decision.stop.map(({ replica }) => replica.id));
      for (const { id } of decision.endpoints.filter(({ state }) => state === 'serving')) {
        const record = world.replicas.find((one) => one.id === id);
        const report = world.reports.get(id);
        expect(record !== undefined && isAlive(record.state) && !stopped.has(id)).toBe(true);
        expect([report?.isGone, report?.probe === 'passed' || (report?.probe === 'unknown' && record?.state === 'READY')]).toEqual([
          false,
          true,
        ]);
      }
    }),
  );
});
