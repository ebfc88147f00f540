import { expect, test } from 'vitest';
import { withWorld, type World } from '../../../test/support/service-world.ts';

const one = { minReplicas: 1, maxReplicas: 1 };

async function endReplica(world: World): Promise<void> {
  const [replica] = await world.replicas();
  if (replica !== undefined) await world.store.replicas.update(replica, { endRequestedAt: world.clock.now() });
}

test('a service ends although a region denies access, and its history names the region', async () => {
  await withWorld(async (world) => {
    await world.untilReady(1);
    world.cloud.conduct.deniedRegion = 'lost';
    const service = await world.store.services.get('chat');
    if (service === undefined) throw new Error('no service');
    await world.store.services.update(service, { desired: 'down' });
    await world.clock.advance(20_000);
    expect([await world.store.services.get('chat'), world.cloud.living.length]).toEqual([undefined, 0]);
    expect(world.cloud.releases).toEqual([service.key]);
    const events = await world.store.events.list({ subject: 'chat' });
    expect(events.filter(({ cause }) => cause === 'region-denied').map(({ message }) => message)).toEqual([
      'The account may not use the region lost. What the service has in that region was not removed. Machines there may run and be billed.',
    ]);
  }, one);
});

test('a machine in a region that denies access does not count as gone', async () => {
  await withWorld(async (world) => {
    await world.untilReady(1);
    world.cloud.conduct.deniedRegion = 'r1';
    await endReplica(world);
    await world.clock.advance(140_000);
    expect((await world.states())[0]).toBe('1 FAILED_CLEANUP');
    expect((await world.replicas())[0]?.reason).toContain('The account may not use the region r1.');
    world.cloud.conduct.deniedRegion = undefined;
    await world.clock.advance(70_000);
    expect((await world.states())[0]).toBe('1 TERMINATED');
  }, one);
});
