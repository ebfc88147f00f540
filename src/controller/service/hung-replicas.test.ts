import { expect, test } from 'vitest';
import { withWorld, type World } from '../../../test/support/service-world.ts';

/** Makes replica 1 hang. Returns how long it stays READY, ms of virtual time. */
async function hang(world: World): Promise<number> {
  world.hung.add(1);
  const startedAt = world.clock.now();
  while ((await world.states())[0] === '1 READY' && world.clock.now() - startedAt < 20_000) {
    await world.clock.advance(1_000);
    world.suspect(1, 'silent');
    await world.clock.settle();
  }
  return world.clock.now() - startedAt;
}

test('a replica without answers is NOT_READY within 5 s and leaves the endpoint set', async () => {
  await withWorld(
    async (world) => {
      await world.untilReady(2);
      await world.clock.advance(5_000);
      const tookMs = await hang(world);
      expect(await world.states()).toEqual(['1 NOT_READY', '2 READY']);
      expect(tookMs).toBeLessThanOrEqual(5_000);
      expect(world.sets.at(-1)).toEqual([2]);
      world.hung.delete(1);
      await world.untilReady(2);
      expect(world.sets.at(-1)?.toSorted()).toEqual([1, 2]);
    },
    { minReplicas: 2 },
  );
});

test('the only replica is NOT_READY within 5 s when hung, and recovers on answering', async () => {
  await withWorld(
    async (world) => {
      await world.untilReady(1);
      await world.clock.advance(5_000);
      const tookMs = await hang(world);
      expect(await world.states()).toEqual(['1 NOT_READY']);
      expect(tookMs).toBeLessThanOrEqual(5_000);
      expect(world.sets.at(-1)).toEqual([]);
      world.hung.delete(1);
      await world.untilReady(1);
      expect(world.sets.at(-1)).toEqual([1]);
    },
    { minReplicas: 1 },
  );
});

test('a slow probe alone leaves a replica READY, whatever else is slow', async () => {
  await withWorld(
    async (world) => {
      await world.untilReady(2);
      world.hung.add(1);
      await world.clock.advance(12_500);
      expect(await world.states()).toEqual(['1 READY', '2 READY']);
    },
    { minReplicas: 2 },
  );
});

test('a hung replica is NOT_READY within 5 s while others drain', async () => {
  await withWorld(
    async (world) => {
      await world.untilReady(4);
      world.cloud.conduct.bootMs = 600_000;
      world.balancer = { inFlight: { 3: 1, 4: 1 } };
      for (const replica of (await world.replicas()).slice(2))
        await world.store.replicas.update(replica, { endRequestedAt: world.clock.now() });
      const isDraining = async (): Promise<boolean> => (await world.states()).slice(2, 4).every((state) => state.endsWith('SHUTTING_DOWN'));
      while (!(await isDraining())) await world.clock.advance(250);
      const tookMs = await hang(world);
      expect((await world.states()).slice(0, 4)).toEqual(['1 NOT_READY', '2 READY', '3 SHUTTING_DOWN', '4 SHUTTING_DOWN']);
      expect(tookMs).toBeLessThanOrEqual(5_000);
    },
    { minReplicas: 4 },
  );
});

/** Advances virtual time until a replica with this id exists. Returns how long it took, ms. */
async function untilLaunched(world: World, id: number): Promise<number> {
  const startedAt = world.clock.now();
  while (!(await world.replicas()).some((replica) => replica.id === id)) {
    if (world.clock.now() - startedAt > 120_000) throw new Error(`replica ${id} is not launched: ${(await world.states()).join()}`);
    await world.clock.advance(250);
    await world.clock.settle();
  }
  return world.clock.now() - startedAt;
}

test('without requests, the replacement of a hung replica is requested within 30 s', async () => {
  await withWorld(
    async (world) => {
      await world.untilReady(2);
      await world.clock.advance(5_000);
      world.cloud.conduct.bootMs = 40_000;
      world.hung.add(1);
      expect(await untilLaunched(world, 3)).toBeLessThanOrEqual(30_000);
      expect((await world.states()).slice(0, 2)).toEqual(['1 NOT_READY', '2 READY']);
      expect((await world.historyOf(3))[0]?.[1]).toMatch(
        /^The probes of replica 1 have failed for \d+ s; replica 3 is launched in its place\.$/,
      );
      await world.untilReady(2);
      await world.untilStates(['1 FAILED_PROBING', '2 READY', '3 READY'], 20_000);
      expect(world.cloud.living).toHaveLength(2);
    },
    { minReplicas: 2 },
  );
});

test('a hung replica that answers before its replacement is ready serves again, and the replacement ends', async () => {
  await withWorld(
    async (world) => {
      await world.untilReady(2);
      world.cloud.conduct.bootMs = 60_000;
      world.hung.add(1);
      await untilLaunched(world, 3);
      world.hung.delete(1);
      await world.untilStates(['1 READY', '2 READY', '3 TERMINATED'], 30_000);
      expect(world.sets.at(-1)?.toSorted()).toEqual([1, 2]);
    },
    { minReplicas: 2 },
  );
});

test('a hung replica without a replacement in time ends after its grace', async () => {
  await withWorld(
    async (world) => {
      await world.untilReady(2);
      world.cloud.conduct.bootMs = 600_000;
      world.hung.add(1);
      await untilLaunched(world, 3);
      await world.clock.advance(140_000);
      expect((await world.states()).slice(0, 3)).toEqual(['1 NOT_READY', '2 READY', '3 PROVISIONING']);
      await world.untilStates(['1 FAILED_PROBING', '2 READY', '3 PROVISIONING'], 60_000);
    },
    { minReplicas: 2 },
  );
});

test('a restart keeps the replacement of a hung replica', async () => {
  await withWorld(
    async (world) => {
      await world.untilReady(2);
      world.cloud.conduct.bootMs = 100_000;
      world.hung.add(1);
      await untilLaunched(world, 3);
      for (let restart = 0; restart < 3; restart += 1) {
        await world.crash();
        await world.start();
        await world.clock.advance(5_000);
        expect((await world.states()).map((state) => state.replace('PENDING', 'PROVISIONING'))).toEqual([
          '1 NOT_READY',
          '2 READY',
          '3 PROVISIONING',
        ]);
      }
    },
    { minReplicas: 2 },
  );
});

test('a replica that passes its probes while its requests fail is replaced', async () => {
  await withWorld(
    async (world) => {
      await world.untilReady(2);
      await world.clock.advance(120_000);
      world.balancer = { broken: { 1: { hung: 9, cutOff: 0, seconds: 61, ageSeconds: 61 } } };
      await world.untilStates(['1 FAILED_PROBING', '2 READY', '3 READY'], 60_000);
      expect((await world.historyOf(3))[0]?.[1]).toBe(
        'Replica 1 passes its probes, but its last 9 requests failed for 61 s (9 hung, 0 broke off); replica 3 is launched in its place.',
      );
    },
    { minReplicas: 2 },
  );
});
