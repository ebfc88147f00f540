import { expect, test, vi } from 'vitest';
import { withWorld, type World } from '../../../test/support/service-world.ts';
import { FakeRemote } from '../../providers/fake/fake-remote.ts';
import { SvcError } from '../../shared/errors.ts';
import { seededRandom } from '../../shared/random.ts';

const living = (world: World): number => world.place.living.length;

test('brings up what is wanted in parallel, each on one machine', async () => {
  await withWorld(async (world) => {
    world.place.conduct.bootMs = 5_000;
    world.place.conduct.jobOf = () => ({ setupMs: 1_000, readyAfterMs: 2_000 });
    expect(await world.untilReady(2)).toBeLessThan(10_000);
    expect([living(world), world.place.machines.size]).toEqual([2, 2]);
  });
});

test('a killed program is replaced within two seconds, and its machine removed', async () => {
  await withWorld(async (world) => {
    await world.untilReady(2);
    const killedAt = world.clock.now();
    world.place.living[0]?.killProgram();
    await world.clock.advance(100);
    await world.untilReady(2);
    const replacement = (await world.replicas()).find(({ id }) => id === 3);
    expect((replacement?.createdAt ?? 0) - killedAt).toBeLessThan(2_000);
    await world.clock.advance(5_000);
    expect([await world.states(), living(world)]).toEqual([['1 FAILED', '2 READY', '3 READY'], 2]);
  });
});

test('a preempted machine is told from a failed program, and replaced', async () => {
  await withWorld(async (world) => {
    await world.untilReady(2);
    const [first] = world.place.living;
    if (first !== undefined) world.place.preempt(first.id);
    await world.clock.advance(6_000);
    await world.untilReady(2);
    await world.clock.advance(5_000);
    expect((await world.replicas()).find(({ id }) => id === 1)?.state).toBe('PREEMPTED');
  });
});

test('a program that fails at once is tried with growing pauses, given up, and costs nothing then', async () => {
  await withWorld(async (world) => {
    world.place.conduct.jobOf = () => ({ runMs: 100, exitCode: 1, readyAfterMs: 1_000 });
    await world.clock.advance(120_000);
    expect((await world.store.services.get('chat'))?.state).toBe('FAILED');
    expect(living(world)).toBe(0);
    const tried = world.place.machines.size;
    // Five rounds of two: none is begun when the last of them is over.
    expect(tried).toBeLessThanOrEqual(10);
    await world.crash();
    await world.start();
    await world.clock.advance(3_600_000);
    expect(world.place.machines.size).toBe(tried);
  });
});

test('a program that is never ready is given up after its initial delay and not before', async () => {
  await withWorld(async (world) => {
    world.place.conduct.jobOf = () => ({ readyAfterMs: 1e9 });
    await world.clock.advance(1_195_000);
    expect((await world.states()).every((state) => state.endsWith('STARTING'))).toBe(true);
    expect((await world.replicas())[0]?.reason).toContain('/ answered 503');
    await world.clock.advance(20_000);
    expect((await world.replicas()).filter(({ endCause }) => endCause === 'initial-delay')).toHaveLength(2);
  });
});

test('load brings replicas and its end takes them away, down to none and back from none', async () => {
  const policy = { minReplicas: 0, maxReplicas: 3, targetQpsPerReplica: 1, upscaleDelaySeconds: 20, downscaleDelaySeconds: 20 };
  await withWorld(async (world) => {
    await world.clock.advance(30_000);
    expect(living(world)).toBe(0);
    world.arrivals(1);
    expect(await world.untilReady(1)).toBeLessThan(2_000);
    for (let second = 0; second < 90; second += 1) {
      world.arrivals(3);
      await world.clock.advance(1_000);
    }
    await world.untilReady(3);
    await world.untilReady(0, 300_000);
    await world.clock.advance(20_000);
    expect([(await world.store.services.get('chat'))?.state, living(world)]).toEqual(['NO_REPLICA', 0]);
  }, policy);
});

test('requests that wait bring a replica, also to a control that was not there when they came, and it stays while they are under way', async () => {
  const policy = { minReplicas: 0, maxReplicas: 3, targetQpsPerReplica: 1, upscaleDelaySeconds: 20, downscaleDelaySeconds: 20 };
  await withWorld(async (world) => {
    await world.clock.advance(30_000);
    world.balancer = { queued: 2 };
    // Without regard to what waits it would take the upscale delay. Nearer than that no bound holds: a launch reads and writes real files, and while
    // a busy machine does so virtual time goes on.
    expect(await world.untilReady(1)).toBeLessThan(15_000);
    world.balancer = { inFlight: { 1: 2 } };
    await world.clock.advance(600_000);
    expect(await world.states()).toEqual(['1 READY']);
    world.balancer = {};
    await world.untilReady(0, 300_000);
  }, policy);
});

test('a replica that goes away has its requests waited for, also while the balancer is handing over', async () => {
  await withWorld(async (world) => {
    await world.untilReady(2);
    world.balancer = { inFlight: { 2: 1 } };
    const [, second] = await world.replicas();
    if (second !== undefined) await world.store.replicas.update(second, { endRequestedAt: world.clock.now() });
    await world.clock.advance(10_000);
    world.balancer = { connected: false, inFlight: {} };
    await world.clock.advance(2_000);
    world.balancer = { inFlight: { 2: 1 }, hellos: 2 };
    await world.clock.advance(10_000);
    expect((await world.states())[1]).toBe('2 SHUTTING_DOWN');
    expect(living(world)).toBe(3);
    world.balancer = { hellos: 2 };
    await world.clock.advance(3_000);
    expect(living(world)).toBe(2);
  });
});

test('with a target for each accelerator, machines of other kinds count as the smallest, which the history says', async () => {
  const policy = { minReplicas: 1, maxReplicas: 5, targetQpsPerReplica: { L4: 2, A100: 10 }, upscaleDelaySeconds: 20 };
  await withWorld(async (world) => {
    await world.untilReady(1);
    const events = await world.store.events.list({ subject: 'chat' });
    expect(events.find(({ cause }) => cause === 'no-target')?.message).toBe(
      'target_qps_per_replica has no entry for a machine without accelerators; it counts as the smallest one, 2 requests/s.',
    );
    for (let second = 0; second < 90; second += 1) {
      world.arrivals(5);
      await world.clock.advance(1_000);
    }
    await world.untilReady(3);
  }, policy);
});

test.each([1, 2, 3])(
  'killed at any moment, with slow calls and lost replies, it never has two machines for one replica and leaks none (seed %d)',
  async (seed) => {
    await withWorld(
      async (world) => {
        const random = seededRandom(seed);
        Object.assign(world.place.conduct, {
          callMs: 40,
          bootMs: 3_000,
          lostReplies: 0.1,
          jobOf: () => ({ setupMs: 500, readyAfterMs: 800 }),
        });
        for (let crash = 0; crash < 40; crash += 1) {
          await world.clock.advance(Math.floor(random() * 4_000));
          await world.crash();
          const keys = world.place.living.map(({ key }) => key);
          expect(new Set(keys).size).toBe(keys.length);
          if (random() < 0.3) world.place.living[0]?.killProgram();
          await world.start();
        }
        world.place.conduct.lostReplies = 0;
        await world.untilReady(2);
        await world.clock.advance(130_000);
        expect(living(world)).toBe(2);
      },
      {},
      seed,
    );
  },
  60_000,
);

test('taken down, it leaves neither machine nor record', async () => {
  await withWorld(async (world) => {
    await world.untilReady(2);
    const service = await world.store.services.get('chat');
    if (service !== undefined) await world.store.services.update(service, { desired: 'down' });
    await world.clock.advance(10_000);
    expect([await world.store.services.get('chat'), living(world)]).toEqual([undefined, 0]);
  });
});

test('a machine that its place will take back goes on with what it has begun, and another one is got at once', async () => {
  await withWorld(async (world) => {
    await world.untilReady(2);
    const [leaving] = world.place.living;
    if (leaving === undefined) throw new Error('no machine');
    world.balancer = { inFlight: { 1: 1 } };
    world.place.announce(leaving.id, { kind: 'interruption', at: world.clock.now() + 120_000 });
    await world.clock.advance(10_000);
    expect(await world.states()).toEqual(['1 SHUTTING_DOWN', '2 READY', '3 READY']);
    expect(leaving.goneReason).toBeUndefined();
    world.balancer = {};
    await world.clock.advance(5_000);
    expect(await world.states()).toEqual(['1 PREEMPTED', '2 READY', '3 READY']);
    expect(leaving.goneReason).toBe('deleted');
  });
});

test('a machine that its place may take back stays', async () => {
  await withWorld(async (world) => {
    await world.untilReady(2);
    for (const { id } of world.place.living) world.place.announce(id, { kind: 'rebalance', at: undefined });
    await world.clock.advance(30_000);
    expect(await world.states()).toEqual(['1 READY', '2 READY']);
  });
});

test('after a restart all that were ready are in the first set, and what died meanwhile goes once its place has said so', async () => {
  await withWorld(
    async (world) => {
      await world.untilReady(3);
      await world.crash();
      world.place.living[0]?.killProgram();
      world.sets.splice(0);
      await world.start();
      expect(world.sets.slice(0, 2)).toEqual([
        [1, 2, 3],
        [2, 3],
      ]);
    },
    { minReplicas: 3 },
  );
});

test('after a restart a machine that hangs does not keep the service from being looked after', async () => {
  await withWorld(async (world) => {
    await world.untilReady(2);
    await world.crash();
    const hanging = vi.spyOn(FakeRemote.prototype, 'readFile').mockReturnValue(new Promise(() => undefined));
    try {
      await world.start();
      expect(world.sets.at(-1)).toEqual([1, 2]);
    } finally {
      hanging.mockRestore();
    }
  });
});

test('a failure is counted once, also when the database was away at first', async () => {
  await withWorld(async (world) => {
    await world.untilReady(2);
    const { services } = world.store;
    const update = services.update.bind(services);
    services.update = () => Promise.reject(new SvcError('SVC_DATABASE', 'The state database does not answer.'));
    world.place.living[0]?.killProgram();
    await world.clock.advance(3_000);
    services.update = update;
    await world.clock.advance(10_000);
    await world.untilReady(2);
    expect((await services.get('chat'))?.memory.failures).toHaveLength(1);
  });
});

test('a service is taken down also while its files cannot be fetched', async () => {
  await withWorld(async (world) => {
    await world.crash();
    world.filesThere = new Promise(() => undefined);
    await world.start();
    await world.clock.advance(10_000);
    expect(await world.states()).toEqual(['1 PROVISIONING', '2 PROVISIONING']);
    const service = await world.store.services.get('chat');
    if (service === undefined) throw new Error('no service');
    await world.store.services.update(service, { desired: 'down' });
    await world.clock.advance(60_000);
    expect([await world.store.services.get('chat'), living(world)]).toEqual([undefined, 0]);
  });
});

test('what places made beside machines is released with the last of them', async () => {
  await withWorld(async (world) => {
    await world.untilReady(2);
    expect(world.place.releases).toEqual([]);
    const service = await world.store.services.get('chat');
    if (service === undefined) throw new Error('no service');
    await world.store.services.update(service, { desired: 'down' });
    await world.clock.advance(60_000);
    expect(await world.store.services.get('chat')).toBeUndefined();
    expect(world.place.releases).toEqual(['0a1b2c3d']);
  });
});

test('machines let nobody in but the controller that was put somewhere, and are found by its key', async () => {
  await withWorld(async (world) => {
    const place = { provider: 'aws', region: 'us-east-2', zone: null, instanceType: 'm6i.xlarge', hourlyUsd: 0.2 };
    await world.crash();
    world.host = { key: 'c0ffee00', publicHost: '203.0.113.7', addresses: ['203.0.113.7'], place, whenIdle: 'exit' };
    await world.start();
    await world.untilReady(2);
    for (const { spec } of world.place.living) {
      expect(spec.clients).toEqual(['203.0.113.7']);
      expect(spec.tags).toMatchObject({ 'svc-owner': 'c0ffee00' });
    }
  });
});
