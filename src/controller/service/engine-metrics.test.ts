import { expect, test } from 'vitest';
import { type World, withWorld } from '../../../test/support/service-world.ts';

const living = (world: World): number => world.cloud.living.length;

test('saturated engines launch one more replica; without their metrics no replica ends', async () => {
  const policy = {
    minReplicas: 1,
    maxReplicas: 4,
    autoscaler: 'concurrency',
    targetOngoingRequestsPerReplica: 100,
    metricsPath: '/metrics',
    upscaleDelaySeconds: 0,
    downscaleDelaySeconds: 20,
  } as const;
  await withWorld(async (world) => {
    world.engine = { waiting: 0, cacheUsage: 0.5 };
    await world.untilReady(1);
    await world.clock.advance(60_000);
    expect(living(world)).toBe(1);
    world.engine = { waiting: 0, cacheUsage: 0.9 };
    await world.untilReady(2);
    world.engine = undefined;
    await world.clock.advance(60_000);
    const before = living(world);
    await world.clock.advance(600_000);
    expect(living(world)).toBe(before);
    const messages = (await world.store.events.list({ subject: 'chat' })).flatMap(({ cause, message }) =>
      cause === 'autoscale' ? message : [],
    );
    expect(messages.join('\n')).toContain('0 waiting in engines, KV cache 90 % used (concurrency): from 1 to 2 replicas.');
    world.engine = { waiting: 0, cacheUsage: 0.5 };
    await world.untilReady(1, 120_000);
  }, policy);
});

test('replicas have a timer for metrics only where the policy has their path', async () => {
  const timers: number[] = [];
  for (const change of [{}, { metricsPath: '/metrics' }] as const) {
    await withWorld(
      async (world) => {
        await world.untilReady(2);
        await world.clock.advance(10_000);
        timers.push(world.clock.pendingTimers);
      },
      { minReplicas: 2, maxReplicas: 2, autoscaler: 'concurrency', targetOngoingRequestsPerReplica: 100, ...change },
    );
  }
  const [without = 0, withPath = 0] = timers;
  expect(withPath - without).toBe(2);
});
