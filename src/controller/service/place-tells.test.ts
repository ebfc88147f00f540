import { expect, test } from 'vitest';
import { anOffer } from '../../../test/support/builders.ts';
import { withWorld, type World } from '../../../test/support/service-world.ts';
import { SvcError } from '../../shared/errors.ts';

const one = { minReplicas: 1, maxReplicas: 1 };

const reasonsOf = async (world: World, wanted: string): Promise<readonly string[]> =>
  (await world.told(1)).flatMap(([cause, message]) => (cause === wanted ? [message] : []));

async function takeDown(world: World): Promise<void> {
  const service = await world.store.services.get('chat');
  if (service !== undefined) await world.store.services.update(service, { desired: 'down' });
}

test('what keeps a machine from running is told in the words of its place, once for each change', async () => {
  await withWorld(async (world) => {
    Object.assign(world.place.conduct, { bootMs: 60_000, bootOf: () => ({ message: '0/3 nodes are available: 3 Insufficient cpu.' }) });
    await world.clock.advance(20_000);
    const [replica] = await world.replicas();
    expect([replica?.state, replica?.reason]).toEqual(['PROVISIONING', 'fake/r1: 0/3 nodes are available: 3 Insufficient cpu.']);
    const toldAt = world.clock.now();
    world.place.living[0]?.say('Pulling image "model:v1".');
    await world.clock.advanceUntil(() => world.clock.now() - toldAt >= 100, 100, 10);
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

test.each([1, 2, 3])(
  'of %d, machines that never start are given up after three, with the reason of their place, and none is begun after that',
  async (wanted) => {
    await withWorld(
      async (world) => {
        world.place.conduct.bootOf = () => ({ hopeless: 'Failed to pull image "nosuch": not found.' });
        await world.clock.advance(120_000);
        const service = await world.store.services.get('chat');
        expect(service?.state).toBe('FAILED');
        const events = await world.store.events.list({ subject: 'chat' });
        const gaveUp = events.findIndex(({ cause }) => cause === 'gave-up');
        expect(events[gaveUp]?.message).toContain('Failed to pull image "nosuch": not found.');
        expect(events.slice(gaveUp).filter(({ cause }) => cause === 'wanted' || cause === 'launch')).toEqual([]);
        expect(service?.reason).toMatch(/\(see: svc serve logs chat (\d)\)\. Replica \1: The machine at fake\/r1 did not start: /);
        expect([world.place.machines.size, world.place.living.length]).toEqual([3, 0]);
        expect(await world.states()).toEqual(['1 FAILED_PROVISION', '2 FAILED_PROVISION', '3 FAILED_PROVISION']);
        // The same cause reads the same for each: it is listed once. Which machine it was is in the history.
        const mend = 'Mend what that names in the task; an image is its resources.image_id.';
        expect([...new Set((await world.replicas()).map(({ reason }) => reason))]).toEqual([
          `The machine at fake/r1 did not start: Failed to pull image "nosuch": not found. ${mend}`,
        ]);
        const [id] = world.place.machines.keys();
        expect((await reasonsOf(world, 'boot-failed'))[0]).toContain(`Machine ${id} is given up. The machine at fake/r1 did not start: `);
      },
      { minReplicas: wanted, maxReplicas: wanted },
    );
  },
);

test('where machines of one place never run, the next place is used', async () => {
  const offers = ['bad', 'good'].map((region, index) => anOffer({ provider: 'fake', region, hourlyUsd: index + 1 }));
  await withWorld(
    async (world) => {
      world.place.conduct.bootOf = (_, { region }) => (region === 'bad' ? { hopeless: 'Failed to pull image.' } : {});
      expect(await world.untilReady(1)).toBeLessThan(10_000);
      expect((await world.replicas()).map(({ id, place }) => [id, place?.region])).toEqual([[1, 'good']]);
      expect((await reasonsOf(world, 'boot-failed'))[0]).toContain('Failed to pull image.');
    },
    one,
    1,
    offers,
  );
});

test.each<readonly [how: string, tells: boolean, withinMs: number]>([
  ['is told of is acted upon at once', true, 100],
  ['nobody tells of is found by asking', false, 5_100],
])('a lost machine that %s, and its reason is what the place said', async (_, tells, withinMs) => {
  await withWorld(async (world) => {
    world.place.conduct.tells = tells;
    await world.crash();
    await world.start();
    await world.untilReady(1);
    await world.clock.advance(10_000);
    const [machine] = world.place.living;
    if (machine === undefined) throw new Error('no machine');
    world.place.preempt(machine.id, 'The node was low on resource: memory');
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

test('a burst of changes is one look at the place', async () => {
  await withWorld(async (world) => {
    await world.untilReady(1);
    await world.clock.advance(5_500);
    let calls = 0;
    world.place.conduct.onCall = (when) => {
      if (when === 'before') calls += 1;
    };
    for (let change = 0; change < 100; change += 1) for (const tell of world.place.watchers) tell();
    await world.clock.advance(100);
    expect(calls).toBe(1);
  }, one);
});

test('a program that its limit of memory ended says so', async () => {
  await withWorld(async (world) => {
    world.place.conduct.jobOf = (machine) => (machine === 1 ? { memoryKills: { kills: 1, limitBytes: 2 ** 31 } } : {});
    await world.untilReady(1);
    world.place.living[0]?.killProgram();
    await world.clock.advance(2_000);
    expect((await world.replicas())[0]?.reason).toBe('Its run was killed for want of memory (limit 2 GB). It wrote no output.');
  }, one);
});

test('a machine that its place will take back serves until its replacement is ready', async () => {
  await withWorld(async (world) => {
    await world.untilReady(1);
    world.place.conduct.bootMs = 30_000;
    const [leaving] = world.place.living;
    if (leaving === undefined) throw new Error('no machine');
    world.place.announce(leaving.id, { kind: 'interruption', at: world.clock.now() + 120_000 });
    await world.clock.advance(25_000);
    expect(await world.states()).toEqual(['1 READY', '2 PROVISIONING']);
    expect((await reasonsOf(world, 'interruption-notice'))[0]).toContain('is taken back by its place at');
    await world.clock.advance(15_000);
    expect(await world.states()).toEqual(['1 PREEMPTED', '2 READY']);
  }, one);
});

test('when its replacement is late it leaves in time for its requests to end', async () => {
  await withWorld(async (world) => {
    await world.untilReady(1);
    world.place.conduct.bootMs = 300_000;
    const [leaving] = world.place.living;
    if (leaving === undefined) throw new Error('no machine');
    world.place.announce(leaving.id, { kind: 'interruption', at: world.clock.now() + 120_000 });
    await world.clock.advance(58_000);
    expect((await world.states())[0]).toBe('1 READY');
    await world.clock.advance(6_000);
    expect(await world.states()).toEqual(['1 PREEMPTED', '2 PROVISIONING']);
  }, one);
});

test('taking a service down does not wait for the next of attempts to remove a machine that are far apart', async () => {
  await withWorld(async (world) => {
    await world.untilReady(1);
    world.place.conduct.onCall = () => {
      throw new SvcError('SVC_DENIED', 'the credentials have expired.');
    };
    const [replica] = await world.replicas();
    if (replica !== undefined) await world.store.replicas.update(replica, { endRequestedAt: world.clock.now() });
    await world.clock.advance(140_000);
    expect((await world.states())[0]).toBe('1 FAILED_CLEANUP');
    world.place.conduct.onCall = () => undefined;
    await takeDown(world);
    await world.clock.advance(3_000);
    expect([await world.store.services.get('chat'), world.place.living.length]).toEqual([undefined, 0]);
  }, one);
});
