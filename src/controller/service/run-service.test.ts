import { expect, test, vi } from 'vitest';
import { withWorld, type World } from '../../../test/support/service-world.ts';
import { tlsRefused } from '../../domain/balancer-link.ts';
import { FakeRemote } from '../../providers/fake/fake-remote.ts';
import { FakeProvider } from '../../providers/fake/index.ts';
import { SvcError } from '../../shared/errors.ts';
import { seededRandom } from '../../shared/random.ts';

const living = (world: World): number => world.cloud.living.length;

test('replicas launch in parallel, each on one machine', async () => {
  await withWorld(async (world) => {
    world.cloud.conduct.bootMs = 5_000;
    world.cloud.conduct.jobOf = () => ({ setupMs: 1_000, readyAfterMs: 2_000 });
    expect(await world.untilReady(2)).toBeLessThan(10_000);
    expect([living(world), world.cloud.machines.size]).toEqual([2, 2]);
  });
});

test('a killed program is replaced within two seconds, and its machine removed', async () => {
  await withWorld(async (world) => {
    await world.untilReady(2);
    const killedAt = world.clock.now();
    world.cloud.living[0]?.killProgram();
    await world.clock.advance(100);
    await world.untilReady(2);
    const replacement = (await world.replicas()).find(({ id }) => id === 3);
    expect((replacement?.createdAt ?? 0) - killedAt).toBeLessThan(2_000);
    await world.clock.advance(5_000);
    expect([await world.states(), living(world)]).toEqual([['1 FAILED', '2 READY', '3 READY'], 2]);
  });
});

test('a preempted machine is distinguished from a failed program and replaced', async () => {
  await withWorld(async (world) => {
    await world.untilReady(2);
    const [first] = world.cloud.living;
    if (first !== undefined) world.cloud.preempt(first.id);
    await world.clock.advance(6_000);
    await world.untilReady(2);
    await world.clock.advance(5_000);
    expect((await world.replicas()).find(({ id }) => id === 1)?.state).toBe('PREEMPTED');
  });
});

test('a program that fails at once is retried with backoff, then given up', async () => {
  await withWorld(async (world) => {
    world.cloud.conduct.jobOf = () => ({ runMs: 100, exitCode: 1, readyAfterMs: 1_000 });
    await world.clock.advance(120_000);
    expect((await world.store.services.get('chat'))?.state).toBe('FAILED');
    expect(living(world)).toBe(0);
    const tried = world.cloud.machines.size;
    // Five rounds of two replicas. No further round starts after that.
    expect(tried).toBeLessThanOrEqual(10);
    await world.crash();
    await world.start();
    await world.clock.advance(3_600_000);
    expect(world.cloud.machines.size).toBe(tried);
  });
});

test('a program that never becomes ready is given up after its initial delay', async () => {
  await withWorld(async (world) => {
    world.cloud.conduct.jobOf = () => ({ readyAfterMs: 1e9 });
    await world.clock.advance(1_195_000);
    expect((await world.states()).every((state) => state.endsWith('STARTING'))).toBe(true);
    expect((await world.replicas())[0]?.reason).toContain('/ answered 503');
    await world.clock.advance(20_000);
    expect((await world.replicas()).filter(({ endCause }) => endCause === 'initial-delay')).toHaveLength(2);
  });
});

test('replicas follow the load, down to zero and up from zero', async () => {
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

test('queued requests launch a replica, also after a restart; requests in flight keep it', async () => {
  const policy = { minReplicas: 0, maxReplicas: 3, targetQpsPerReplica: 1, upscaleDelaySeconds: 20, downscaleDelaySeconds: 20 };
  await withWorld(async (world) => {
    await world.clock.advance(30_000);
    world.balancer = { queued: 2 };
    // Without counting queued requests, this would take the upscale delay. The bound cannot be tighter: a launch reads
    // and writes real files, and virtual time advances meanwhile.
    expect(await world.untilReady(1)).toBeLessThan(15_000);
    world.balancer = { inFlight: { 1: 2 } };
    await world.clock.advance(600_000);
    expect(await world.states()).toEqual(['1 READY']);
    world.balancer = {};
    await world.untilReady(0, 300_000);
  }, policy);
});

test("a draining replica's requests are awaited, also during a balancer's handover", async () => {
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

test('without a target for its accelerator, a machine counts as the smallest one', async () => {
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

test('balancer reports during a slow start reach a ready reconciler', async () => {
  await withWorld(async (world) => {
    await world.untilReady(2);
    await world.crash();
    world.storeMs = 900;
    let reports = 0;
    world.whenLinked = (listeners) => {
      const report = (): void => {
        reports += 1;
        listeners.arrivals(3, 1);
        listeners.suspect(1, 'timeout');
      };
      report();
      world.clock.every(50, report);
    };
    await world.start();
    await world.clock.advance(5_000);
    expect(reports).toBeGreaterThan(50);
    await world.untilReady(2);
  });
});

test('a replica becomes ready although its reconciler keeps crashing over a slow store', async () => {
  await withWorld(async (world) => {
    world.cloud.conduct.jobOf = () => ({ setupMs: 1_000, readyAfterMs: 4_000 });
    const random = seededRandom(7);
    world.storeMs = 150;
    for (let life = 0; life < 9; life += 1) {
      await world.clock.advance(Math.round(random() * 4_000));
      await world.crash();
      await world.start();
    }
    expect(await world.untilReady(2, 30_000)).toBeLessThan(30_000);
    expect(living(world)).toBe(2);
  });
});

test.each([1, 2, 3])('killed at any moment, each replica has one machine; none leaks (seed %d)', async (seed) => {
  await withWorld(
    async (world) => {
      const random = seededRandom(seed);
      Object.assign(world.cloud.conduct, {
        callMs: 40,
        bootMs: 3_000,
        lostReplies: 0.1,
        jobOf: () => ({ setupMs: 500, readyAfterMs: 800 }),
      });
      for (let crash = 0; crash < 40; crash += 1) {
        await world.clock.advance(Math.floor(random() * 4_000));
        await world.crash();
        const keys = world.cloud.living.map(({ key }) => key);
        expect(new Set(keys).size).toBe(keys.length);
        if (random() < 0.3) world.cloud.living[0]?.killProgram();
        await world.start();
      }
      world.cloud.conduct.lostReplies = 0;
      await world.untilReady(2);
      await world.clock.advance(130_000);
      expect(living(world)).toBe(2);
    },
    {},
    seed,
  );
});

test('a terminated service leaves neither machine nor record', async () => {
  await withWorld(async (world) => {
    await world.untilReady(2);
    const service = await world.store.services.get('chat');
    if (service !== undefined) await world.store.services.update(service, { desired: 'down' });
    await world.clock.advance(10_000);
    expect([await world.store.services.get('chat'), living(world)]).toEqual([undefined, 0]);
  });
});

test('a machine with an interruption notice drains while its replacement launches', async () => {
  await withWorld(async (world) => {
    await world.untilReady(2);
    const [interrupted] = world.cloud.living;
    if (interrupted === undefined) throw new Error('no machine');
    world.balancer = { inFlight: { 1: 1 } };
    world.cloud.announce(interrupted.id, { kind: 'interruption', at: world.clock.now() + 120_000 });
    await world.untilStates(['1 SHUTTING_DOWN', '2 READY', '3 READY'], 60_000);
    expect(interrupted.goneReason).toBeUndefined();
    world.balancer = {};
    await world.untilStates(['1 PREEMPTED', '2 READY', '3 READY'], 60_000);
    expect(interrupted.goneReason).toBe('deleted');
  });
});

test('a rebalance recommendation ends no machine while its replacement starts', async () => {
  await withWorld(async (world) => {
    await world.untilReady(2);
    world.cloud.conduct.bootMs = 300_000;
    for (const { id } of world.cloud.living) world.cloud.announce(id, { kind: 'rebalance', at: undefined });
    await world.clock.advance(30_000);
    // One at a time: the surge is 1.
    expect(await world.states()).toEqual(['1 READY', '2 READY', '3 PROVISIONING']);
  });
});

test('after a restart, ready replicas are in the first set; reported deaths leave it', async () => {
  await withWorld(
    async (world) => {
      await world.untilReady(3);
      await world.crash();
      world.cloud.living[0]?.killProgram();
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

test('after a restart, a hanging machine does not block the first set', async () => {
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

test('a purge searches the providers once more', async () => {
  const released = vi.spyOn(FakeProvider.prototype, 'release').mockRejectedValue(new SvcError('SVC_PLACE_FAILED', 'no answer.'));
  try {
    await withWorld(async (world) => {
      const change = async (purge: boolean): Promise<void> => {
        const service = await world.store.services.get('chat');
        if (service !== undefined) await world.store.services.update(service, { desired: 'down', purge });
      };
      await change(false);
      await world.clock.advance(60_000);
      expect((await world.store.services.get('chat'))?.reason).toContain('no answer.');
      released.mockRestore();
      await change(true);
      await world.clock.advance(5_000);
      expect([await world.store.services.get('chat'), world.cloud.releases]).toEqual([undefined, ['0a1b2c3d']]);
    });
  } finally {
    released.mockRestore();
  }
});

test('a service is terminated even while its files cannot be fetched', async () => {
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

test('other resources at a provider are released after the last machine', async () => {
  await withWorld(async (world) => {
    await world.untilReady(2);
    expect(world.cloud.releases).toEqual([]);
    const service = await world.store.services.get('chat');
    if (service === undefined) throw new Error('no service');
    await world.store.services.update(service, { desired: 'down' });
    await world.clock.advance(60_000);
    expect(await world.store.services.get('chat')).toBeUndefined();
    expect(world.cloud.releases).toEqual(['0a1b2c3d']);
  });
});

test('machines of a remote controller admit only its address and carry its key', async () => {
  await withWorld(async (world) => {
    const machine = { provider: 'aws', region: 'us-east-2', zone: null, instanceType: 'm6i.xlarge', hourlyUsd: 0.2 };
    await world.crash();
    world.host = { key: 'c0ffee00', publicHost: '203.0.113.7', addresses: ['203.0.113.7'], machine, whenIdle: 'exit' };
    await world.start();
    await world.untilReady(2);
    for (const { spec } of world.cloud.living) {
      expect(spec.clients).toEqual(['203.0.113.7']);
      expect(spec.tags).toMatchObject({ 'svc-owner': 'c0ffee00' });
    }
  });
});

test('refused TLS files stay in status until the balancer serves with new ones', async () => {
  await withWorld(async (world) => {
    await world.untilReady(2);
    const reason = async (): Promise<string | null | undefined> => (await world.store.services.get('chat'))?.reason;
    const problem = `${tlsRefused} The certfile /c is empty.`;
    world.tlsChanged(problem);
    await world.clock.advance(1_000);
    expect(await reason()).toBe(problem);
    world.tlsChanged(null);
    await world.clock.advance(1_000);
    expect(await reason()).toBeNull();
    const events = await world.store.events.list({ subject: 'chat' });
    expect(events.filter(({ cause }) => cause.startsWith('tls-')).map(({ message }) => message)).toEqual([
      problem,
      'The endpoint serves with the TLS files that are there now.',
    ]);
  });
});

test("a service that cannot be removed completely shows the provider's reason", async () => {
  const released = vi.spyOn(FakeProvider.prototype, 'release').mockRejectedValue(new SvcError('SVC_PLACE_FAILED', 'no rights.'));
  try {
    await withWorld(async (world) => {
      await world.untilReady(2);
      const service = await world.store.services.get('chat');
      if (service !== undefined) await world.store.services.update(service, { desired: 'down' });
      await world.untilStates(['1 TERMINATED', '2 TERMINATED'], 60_000);
      await world.clock.advance(120_000);
      expect(await world.store.services.get('chat')).toMatchObject({
        state: 'SHUTTING_DOWN',
        reason: 'Removing it is tried again: fake does not remove everything: no rights.',
      });
      // Retries back off rather than run each second.
      expect(released.mock.calls.length).toBeLessThan(20);
      released.mockRestore();
      await world.clock.advance(70_000);
      expect(await world.store.services.get('chat')).toBeUndefined();
    });
  } finally {
    released.mockRestore();
  }
});
