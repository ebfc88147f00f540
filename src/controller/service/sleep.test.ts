import { expect, test } from 'vitest';
import { withWorld, type World } from '../../../test/support/service-world.ts';
import type { ReplicaPolicy } from '../../domain/task.ts';

const policy: Partial<ReplicaPolicy> = {
  minReplicas: 0,
  maxReplicas: 3,
  targetQpsPerReplica: 1,
  upscaleDelaySeconds: 20,
  downscaleDelaySeconds: 20,
  scaleToZero: 'sleep',
};

const living = ({ cloud }: World): number => cloud.living.length;
const served = (world: World): readonly number[] => world.endpoints.flatMap(({ id, state }) => (state === 'serving' ? [id] : []));

/** Two replicas become ready; then the load ends and one sleeps. */
async function untilSleeping(world: World): Promise<void> {
  world.arrivals(1);
  await world.untilReady(1);
  for (let second = 0; second < 90; second += 1) {
    world.arrivals(2);
    await world.clock.advance(1_000);
  }
  await world.untilReady(2);
  for (let second = 0; second < 300 && !(await world.states()).some((state) => state.endsWith('SLEEPING')); second += 1)
    await world.clock.advance(1_000);
  await world.clock.advance(10_000);
}

test('without load one replica sleeps, and a request wakes it up', async () => {
  await withWorld(async (world) => {
    await untilSleeping(world);
    expect([world.told, served(world), living(world)]).toEqual([['/sleep?level=1'], [], 1]);
    expect((await world.store.services.get('chat'))?.state).toBe('NO_REPLICA');
    // Its engine answers no probe.
    world.hung.add(1);
    await world.clock.advance(600_000);
    expect([world.told.length, living(world), (await world.replicas())[0]?.reason]).toEqual([1, 1, null]);
    world.hung.clear();
    world.engineMs = 3_000;
    world.balancer = { queued: 1 };
    world.arrivals(1);
    await world.clock.advance(2_500);
    expect([(await world.states())[0], served(world)]).toEqual(['1 NOT_READY', []]);
    expect(await world.untilReady(1)).toBeLessThan(2_000);
    expect([world.told, served(world), living(world)]).toEqual([['/sleep?level=1', '/wake_up'], [1], 1]);
  }, policy);
});

test('a replica gets no request before its engine is awake, also after a restart', async () => {
  await withWorld(async (world) => {
    await untilSleeping(world);
    await world.crash();
    await world.start();
    await world.clock.advance(10_000);
    expect([served(world), living(world)]).toEqual([[], 1]);
    world.answerOf = (path) => ({ passed: false, isRefusal: true, detail: `${path} answered 503` });
    world.balancer = { queued: 1 };
    world.arrivals(1);
    await world.clock.advance(10_000);
    expect([await world.states(), served(world)]).toEqual([['1 NOT_READY', '2 TERMINATED'], []]);
    expect((await world.replicas())[0]?.reason).toBe('Not ready: /wake_up answered 503.');
    await world.crash();
    world.answerOf = (path) => ({ passed: true, isRefusal: false, detail: `${path} answered 200` });
    await world.start();
    await world.untilReady(1);
    expect(served(world)).toEqual([1]);
  }, policy);
});

test('an engine that cannot sleep ends, and its machine with it', async () => {
  await withWorld(async (world) => {
    world.answerOf = (path) => ({ passed: path === '/wake_up', isRefusal: path !== '/wake_up', detail: `${path} answered 404` });
    await untilSleeping(world);
    await world.clock.advance(60_000);
    expect([living(world), (await world.replicas())[0]?.reason]).toEqual([
      0,
      'The service needs no replica, and its engine cannot sleep: /sleep?level=1 answered 404 (vLLM needs --enable-sleep-mode and VLLM_SERVER_DEV_MODE=1).',
    ]);
    world.arrivals(1);
    await world.untilReady(1);
  }, policy);
});

test('the engine sleeps after the last request of its replica', async () => {
  await withWorld(async (world) => {
    await untilSleeping(world);
    world.balancer = { queued: 1 };
    world.arrivals(1);
    await world.untilReady(1);
    world.told.length = 0;
    world.balancer = {};
    for (let tick = 0; tick < 3_000 && !(await world.states())[0]?.endsWith('SLEEPING'); tick += 1) await world.clock.advance(50);
    // The balancer had sent it a request just before.
    world.balancer = { inFlight: { 1: 1 } };
    await world.clock.advance(3_000);
    expect([(await world.states())[0], world.told]).toEqual(['1 SLEEPING', []]);
    expect(world.endpoints.map(({ id, state }) => `${id} ${state}`)).toEqual(['1 draining']);
    world.balancer = {};
    await world.clock.advance(2_000);
    expect([(await world.states())[0], world.told]).toEqual(['1 SLEEPING', ['/sleep?level=1']]);
  }, policy);
});

test('a sleeping machine that is preempted is not replaced before a request', async () => {
  await withWorld(async (world) => {
    await untilSleeping(world);
    for (const { id } of world.cloud.living) world.cloud.preempt(id);
    await world.clock.advance(120_000);
    expect([living(world), (await world.states())[0]]).toEqual([0, '1 PREEMPTED']);
    world.arrivals(1);
    await world.untilReady(1);
  }, policy);
});
