import { expect, test } from 'vitest';
import { updateWorld, withWorld, type World } from '../../../test/support/service-world.ts';
import { firstByteLimitsMs, type Outcomes, type ReplicaOutcomes } from '../../domain/outcomes.ts';
import { isAlive } from '../../domain/replica/replica-state.ts';

/** The living replicas, each with its version, oldest first. */
async function living(world: World): Promise<readonly string[]> {
  return (await world.replicas()).filter(({ state }) => isAlive(state)).map(({ id, state, version }) => `${id} v${version} ${state}`);
}

async function causes(world: World): Promise<readonly string[]> {
  return (await world.store.events.list({ subject: 'chat' })).filter(({ replicaId }) => replicaId === null).map(({ cause }) => cause);
}

/** Advances until the update has ended or stopped. Returns the fewest ready and the most living replicas on the way. */
async function untilUpdated(world: World, step: (round: number) => Promise<void> | void = () => undefined) {
  let fewestReady = Number.POSITIVE_INFINITY;
  let mostLiving = 0;
  for (let round = 0; round < 4_000; round += 1) {
    const service = await world.store.services.get('chat');
    if (service?.memory.update === undefined || service.memory.gaveUp) return { fewestReady, mostLiving };
    await step(round);
    await world.clock.advance(100);
    const replicas = await world.replicas();
    fewestReady = Math.min(fewestReady, replicas.filter(({ state }) => state === 'READY').length);
    mostLiving = Math.max(mostLiving, replicas.filter(({ state }) => isAlive(state)).length);
  }
  throw new Error(`the update does not end: ${(await living(world)).join(', ')}`);
}

async function untilOneReady(world: World, version: number): Promise<void> {
  for (let round = 0; round < 1_000; round += 1) {
    if ((await world.replicas()).some((replica) => replica.version === version && replica.state === 'READY')) return;
    await world.clock.advance(50);
  }
  throw new Error(`no replica of version ${version} is ready`);
}

const slow = { callMs: 20, bootMs: 500, jobOf: () => ({ setupMs: 100, readyAfterMs: 300 }) };

test('an update replaces replica by replica and never has fewer ready ones than desired', async () => {
  await withWorld(
    async (world) => {
      Object.assign(world.cloud.conduct, slow);
      await world.untilReady(3);
      await updateWorld(world, { run: 'new' });
      expect(await untilUpdated(world)).toEqual({ fewestReady: 3, mostLiving: 4 });
      expect(await living(world)).toEqual(['4 v2 READY', '5 v2 READY', '6 v2 READY']);
      expect(await causes(world)).toContain('updated');
    },
    { minReplicas: 3 },
  );
});

test('an update of the service section keeps the replicas', async () => {
  await withWorld(
    async (world) => {
      await world.untilReady(2);
      await updateWorld(world, {});
      await untilUpdated(world);
      expect(await living(world)).toEqual(['1 v2 READY', '2 v2 READY']);
    },
    { minReplicas: 2 },
  );
});

test('an update during an update takes its place', async () => {
  await withWorld(
    async (world) => {
      Object.assign(world.cloud.conduct, slow);
      await world.untilReady(3);
      await updateWorld(world, { run: 'second' });
      await untilOneReady(world, 2);
      await updateWorld(world, { run: 'third' });
      const { fewestReady, mostLiving } = await untilUpdated(world);
      expect([fewestReady, mostLiving <= 4]).toEqual([3, true]);
      expect((await living(world)).every((replica) => replica.includes(' v3 '))).toBe(true);
    },
    { minReplicas: 3 },
  );
});

test('going back during an update keeps the replicas that still run the old program', async () => {
  await withWorld(
    async (world) => {
      Object.assign(world.cloud.conduct, slow);
      await world.untilReady(3);
      const { task } = (await world.store.services.version('chat', 1)) ?? {};
      await updateWorld(world, { run: 'new' });
      await untilOneReady(world, 2);
      await updateWorld(world, { run: task?.run });
      await untilUpdated(world);
      const [first, second] = await living(world);
      expect([first, second]).toEqual(['1 v3 READY', '2 v3 READY']);
    },
    { minReplicas: 3 },
  );
});

test('a new version that fails leaves the old one serving at full number', async () => {
  await withWorld(
    async (world) => {
      Object.assign(world.cloud.conduct, slow);
      await world.untilReady(2);
      Object.assign(world.cloud.conduct, { jobOf: () => ({ runMs: 50, exitCode: 3, readyAfterMs: 60_000 }) });
      await updateWorld(world, { run: 'broken' });
      expect(await untilUpdated(world)).toEqual({ fewestReady: 2, mostLiving: 3 });
      await world.clock.advance(60_000);
      expect(await living(world)).toEqual(['1 v1 READY', '2 v1 READY']);
      const service = await world.store.services.get('chat');
      expect(service).toMatchObject({ state: 'READY', reason: expect.stringContaining('The update to version 2 stopped') });
    },
    { minReplicas: 2 },
  );
});

test.for(Array.from({ length: 16 }, (_, index) => index + 1))('an update goes on after the control was killed at call %d', async (call) => {
  await withWorld(
    async (world) => {
      Object.assign(world.cloud.conduct, slow);
      await world.untilReady(2);
      await updateWorld(world, { run: 'new' });
      world.crashAtCall(call, call % 2 === 0 ? 'before' : 'after');
      const revive = async (): Promise<void> => {
        if (!world.isDead) return;
        world.cloud.conduct.onCall = () => undefined;
        await world.crash();
        await world.start();
      };
      const { fewestReady, mostLiving } = await untilUpdated(world, revive);
      // The last calls remove the old machines.
      await world.clock.advance(5_000);
      await revive();
      expect([fewestReady, mostLiving <= 3]).toEqual([2, true]);
      await world.clock.advance(10_000);
      expect((await living(world)).map((replica) => replica.replace(/^\d+ /, ''))).toEqual(['v2 READY', 'v2 READY']);
      expect(world.cloud.living).toHaveLength(2);
    },
    { minReplicas: 2 },
    call,
  );
});

const repliesOf = (responses: number, bucket: number): ReplicaOutcomes => ({
  responses,
  errors: 0,
  firstByteCounts: [...firstByteLimitsMs, 0].map((_, index) => (index === bucket ? responses : 0)),
});

/** Responses of replicas 1 and 2 (old) and 3 (new); those of the new version take four times as long. */
function slowCanary(seconds: number): Outcomes {
  return { 1: repliesOf(10 * seconds, 24), 2: repliesOf(10 * seconds, 24), 3: repliesOf(4 * seconds, 32) };
}

test('a canary whose control is killed is rolled back without a second comparison from the start', async () => {
  await withWorld(
    async (world) => {
      await world.untilReady(2);
      await updateWorld(world, { run: 'slow' }, 'canary');
      await untilOneReady(world, 2);
      /** Seconds until the rollback; undefined when there is none within `most`. */
      const serve = async (most: number): Promise<number | undefined> => {
        for (let second = 1; second <= most; second += 1) {
          world.balancer = { outcomes: slowCanary(second) };
          await world.clock.advance(1_000);
          if ((await world.store.services.get('chat'))?.memory.update?.rejected !== undefined) return second;
        }
        return undefined;
      };
      expect(await serve(25)).toBeUndefined();
      const { evidence } = (await world.store.services.get('chat'))?.memory.update ?? {};
      expect(evidence?.windows).toBeGreaterThan(14);
      await world.crash();
      // The balancer's counts begin with the next process.
      world.balancer = { outcomes: {} };
      await world.start();
      // Alone, it would need 29 s.
      expect(await serve(60)).toBeLessThan(20);
      const { update } = (await world.store.services.get('chat'))?.memory ?? {};
      expect([update?.rejected, update?.evidence]).toEqual([expect.stringContaining('time to first byte'), undefined]);
    },
    { minReplicas: 2 },
  );
});
