import { expect, test } from 'vitest';
import { anOffer } from '../../../test/support/builders.ts';
import { withWorld, type World } from '../../../test/support/service-world.ts';
import { SvcError } from '../../shared/errors.ts';

const one = { minReplicas: 1, maxReplicas: 1 };

const reasonsOf = async (world: World, expectedCause: string): Promise<readonly string[]> =>
  (await world.historyOf(1)).flatMap(([cause, message]) => (cause === expectedCause ? [message] : []));

async function terminateService(world: World): Promise<void> {
  const service = await world.store.services.get('chat');
  if (service !== undefined) await world.store.services.update(service, { desired: 'down' });
}

test("each new reason for a slow boot is shown in the provider's words", async () => {
  await withWorld(async (world) => {
    Object.assign(world.cloud.conduct, { bootMs: 60_000, bootOf: () => ({ message: '0/3 nodes are available: 3 Insufficient cpu.' }) });
    await world.clock.advance(20_000);
    const [replica] = await world.replicas();
    expect([replica?.state, replica?.reason]).toEqual(['PROVISIONING', 'fake/r1: 0/3 nodes are available: 3 Insufficient cpu.']);
    const reportedAt = world.clock.now();
    world.cloud.living[0]?.say('Pulling image "model:v1".');
    await world.clock.advanceUntil(() => world.clock.now() - reportedAt >= 100, 100, 10);
    await world.clock.settle();
    expect((await world.replicas())[0]?.reason).toBe('fake/r1: Pulling image "model:v1".');
    expect(await reasonsOf(world, 'booting')).toEqual([
      'fake/r1: 0/3 nodes are available: 3 Insufficient cpu.',
      'fake/r1: Pulling image "model:v1".',
    ]);
    await world.untilReady(1);
    expect((await world.replicas())[0]?.reason).toBeNull();
  }, one);
});

test.each([1, 2, 3])('with %d replicas, launching stops after three machines that never start', async (replicaCount) => {
  await withWorld(
    async (world) => {
      world.cloud.conduct.bootOf = () => ({ hopeless: 'Failed to pull image "nosuch": not found.' });
      await world.clock.advance(120_000);
      const service = await world.store.services.get('chat');
      expect(service?.state).toBe('FAILED');
      const events = await world.store.events.list({ subject: 'chat' });
      const gaveUp = events.findIndex(({ cause }) => cause === 'gave-up');
      expect(events[gaveUp]?.message).toContain('Failed to pull image "nosuch": not found.');
      expect(events.slice(gaveUp).filter(({ cause }) => cause === 'replica-requested' || cause === 'launch')).toEqual([]);
      expect(service?.reason).toMatch(/\(see: svc serve logs chat (\d)\)\. Replica \1: The machine at fake\/r1 did not start: /);
      expect([world.cloud.machines.size, world.cloud.living.length]).toEqual([3, 0]);
      expect(await world.states()).toEqual(['1 FAILED_PROVISION', '2 FAILED_PROVISION', '3 FAILED_PROVISION']);
      // The same cause has the same text for each replica, so it is listed once. The history names the machine.
      const mend = 'Correct what that names in the task; an image is its resources.image_id.';
      expect([...new Set((await world.replicas()).map(({ reason }) => reason))]).toEqual([
        `The machine at fake/r1 did not start: Failed to pull image "nosuch": not found. ${mend}`,
      ]);
      const [id] = world.cloud.machines.keys();
      expect((await reasonsOf(world, 'boot-failed'))[0]).toContain(`Machine ${id} is given up. The machine at fake/r1 did not start: `);
    },
    { minReplicas: replicaCount, maxReplicas: replicaCount },
  );
});

test('when machines of one location never start, the next location is used', async () => {
  const offers = ['bad', 'good'].map((region, index) => anOffer({ provider: 'fake', region, hourlyUsd: index + 1 }));
  await withWorld(
    async (world) => {
      world.cloud.conduct.bootOf = (_, { region }) => (region === 'bad' ? { hopeless: 'Failed to pull image.' } : {});
      expect(await world.untilReady(1)).toBeLessThan(10_000);
      expect((await world.replicas()).map(({ id, offer }) => [id, offer?.region])).toEqual([[1, 'good']]);
      expect((await reasonsOf(world, 'boot-failed'))[0]).toContain('Failed to pull image.');
    },
    one,
    1,
    offers,
  );
});

test.each<readonly [how: string, tells: boolean, withinMs: number]>([
  ['is reported is handled at once', true, 100],
  ['is not reported is found by polling', false, 5_100],
])("a lost machine that %s, with the provider's reason", async (_, areReported, withinMs) => {
  await withWorld(async (world) => {
    world.cloud.conduct.pushesChanges = areReported;
    await world.crash();
    await world.start();
    await world.untilReady(1);
    await world.clock.advance(10_000);
    const [machine] = world.cloud.living;
    if (machine === undefined) throw new Error('no machine');
    world.cloud.preempt(machine.id, 'The node was low on resource: memory');
    const lostAt = world.clock.now();
    let requestedAt: number | null = null;
    while (requestedAt === null && world.clock.now() - lostAt <= withinMs) {
      await world.clock.advance(20);
      requestedAt = (await world.replicas())[0]?.endRequestedAt ?? null;
    }
    expect(requestedAt).not.toBeNull();
    const [lost] = await world.replicas();
    expect(lost).toMatchObject({ endCause: 'preempted' });
    expect(lost?.reason).toBe(`Its machine ${machine.id} at fake/r1 is gone: The node was low on resource: memory.`);
  }, one);
});

test('a burst of changes causes a single call to the provider', async () => {
  await withWorld(async (world) => {
    await world.untilReady(1);
    await world.clock.advance(5_500);
    let calls = 0;
    world.cloud.conduct.onCall = (when) => {
      if (when === 'before') calls += 1;
    };
    for (let change = 0; change < 100; change += 1) for (const notify of world.cloud.watchers) notify();
    await world.clock.advance(100);
    expect(calls).toBe(1);
  }, one);
});

test('an event reports a program that ignored SIGTERM, and not one that ended on it', async () => {
  for (const [stopMs, expected] of [
    [60_000, /^Its program did not end within 10 s of SIGTERM and was killed \(SIGKILL\)\. Nothing is left of it\.$/],
    [5_000, /^Nothing is left of it\.$/],
  ] as const) {
    await withWorld(async (world) => {
      world.cloud.conduct.jobOf = () => ({ stopMs });
      await world.untilReady(1);
      await terminateService(world);
      await world.clock.advance(60_000);
      expect((await world.historyOf(1)).at(-1)?.[1]).toMatch(expected);
    }, one);
  }
});

test('the end of a program with 0 says that it must stay in the foreground', async () => {
  await withWorld(async (world) => {
    world.cloud.conduct.jobOf = () => ({ runMs: 10, exitCode: 0, readyAfterMs: 60_000 });
    await world.clock.advance(5_000);
    expect((await world.replicas())[0]?.reason).toBe(
      'Its run ended with exit code 0 (the program of a service must stay in the foreground). It wrote no output.',
    );
  }, one);
});

test('a program killed by its memory limit has that as its reason', async () => {
  await withWorld(async (world) => {
    world.cloud.conduct.jobOf = (machine) => (machine === 1 ? { memoryKills: { kills: 1, limitBytes: 2 ** 31 } } : {});
    await world.untilReady(1);
    world.cloud.living[0]?.killProgram();
    await world.clock.advance(2_000);
    expect((await world.replicas())[0]?.reason).toBe('Its run was killed: out of memory (OOM) (limit 2 GB). It wrote no output.');
  }, one);
});

test('a machine with an interruption notice serves until its replacement is ready', async () => {
  await withWorld(async (world) => {
    await world.untilReady(1);
    world.cloud.conduct.bootMs = 30_000;
    const [interrupted] = world.cloud.living;
    if (interrupted === undefined) throw new Error('no machine');
    world.cloud.announce(interrupted.id, { kind: 'interruption', at: world.clock.now() + 120_000 });
    await world.clock.advance(25_000);
    expect(await world.states()).toEqual(['1 READY', '2 PROVISIONING']);
    expect((await reasonsOf(world, 'interruption-notice'))[0]).toContain('is being reclaimed by its provider at');
    await world.clock.advance(15_000);
    expect(await world.states()).toEqual(['1 PREEMPTED', '2 READY']);
  }, one);
});

test('when the replacement is late, an interrupted replica drains before the reclaim', async () => {
  await withWorld(async (world) => {
    await world.untilReady(1);
    world.cloud.conduct.bootMs = 300_000;
    const [interrupted] = world.cloud.living;
    if (interrupted === undefined) throw new Error('no machine');
    world.cloud.announce(interrupted.id, { kind: 'interruption', at: world.clock.now() + 120_000 });
    await world.clock.advance(58_000);
    expect((await world.states())[0]).toBe('1 READY');
    await world.clock.advance(6_000);
    expect(await world.states()).toEqual(['1 PREEMPTED', '2 PROVISIONING']);
  }, one);
});

test('a failed removal is shown after the cause of the end, until the machine is gone', async () => {
  await withWorld(async (world) => {
    await world.untilReady(1);
    world.cloud.conduct.onCall = () => {
      throw new SvcError('SVC_DENIED', 'the credentials have expired.');
    };
    const reasonOfFirst = async (): Promise<string | null | undefined> => (await world.replicas())[0]?.reason;
    const [replica] = await world.replicas();
    if (replica !== undefined) await world.store.replicas.update(replica, { endRequestedAt: world.clock.now() });
    await world.clock.advance(140_000);
    expect((await world.states())[0]).toBe('1 FAILED_CLEANUP');
    const failing = await reasonOfFirst();
    const [cause = '', ...failures] = (failing ?? '').split(' Removing its machine failed: ');
    expect(failures).toEqual(['the credentials have expired.']);
    expect(cause).not.toBe('');
    world.cloud.conduct.onCall = () => undefined;
    await world.clock.advance(70_000);
    expect((await world.states())[0]).toBe('1 TERMINATED');
    expect(await reasonOfFirst()).toBe(cause);
  }, one);
});

test("terminating a service retries a machine's removal at once, without waiting for the backoff", async () => {
  await withWorld(async (world) => {
    await world.untilReady(1);
    world.cloud.conduct.onCall = () => {
      throw new SvcError('SVC_DENIED', 'the credentials have expired.');
    };
    const [replica] = await world.replicas();
    if (replica !== undefined) await world.store.replicas.update(replica, { endRequestedAt: world.clock.now() });
    await world.clock.advance(140_000);
    expect((await world.states())[0]).toBe('1 FAILED_CLEANUP');
    world.cloud.conduct.onCall = () => undefined;
    await terminateService(world);
    await world.clock.advance(3_000);
    expect([await world.store.services.get('chat'), world.cloud.living.length]).toEqual([undefined, 0]);
  }, one);
});
