import { expect, test } from 'vitest';
import { withWorld, type World } from '../../../test/support/service-world.ts';
import type { ReplicaRecord } from '../../domain/records.ts';
import { SvcError } from '../../shared/errors.ts';

/**
 * Makes the service's commits fail. With `isMade` they take effect, but the database cannot confirm it. Returns a
 * function that ends the failure.
 */
function failCommits({ store: { services } }: World, isMade: boolean): () => void {
  const commit = services.commit.bind(services);
  services.commit = async (...decided) => {
    if (isMade) await commit(...decided);
    throw new SvcError('SVC_DATABASE', 'The state database does not answer.');
  };
  return () => (services.commit = commit);
}

test.for([
  ['is not written', false],
  ['is written and the database cannot say so', true],
] as const)('a failure counts once and its replica ends when the decision %s', async ([, isMade]) => {
  await withWorld(async (world) => {
    await world.untilReady(2);
    const restore = failCommits(world, isMade);
    world.cloud.living[0]?.killProgram();
    await world.clock.advance(3_000);
    restore();
    await world.clock.advance(10_000);
    await world.untilReady(2);
    expect((await world.store.services.get('chat'))?.memory.failures).toHaveLength(1);
    expect((await world.replicas()).filter(({ state }) => state === 'SHUTTING_DOWN')).toEqual([]);
  });
});

test('a replica that recovers before its end is written keeps serving', async () => {
  await withWorld(async (world) => {
    await world.untilReady(2);
    const restore = failCommits(world, false);
    world.hung.add(1).add(2);
    await world.clock.advance(300_000);
    expect(world.sets.at(-1)).toEqual([]);
    world.hung.clear();
    await world.clock.advance(60_000);
    expect(world.sets.at(-1)).toEqual([1, 2]);
    restore();
    await world.clock.advance(60_000);
    expect(await world.states()).toEqual(['1 READY', '2 READY']);
  });
});

test('a replica leaves the endpoint set before its machine, though nothing can be written', async () => {
  await withWorld(async (world) => {
    await world.untilReady(2);
    world.cloud.conduct.callMs = 1_000;
    const end = async (index: number): Promise<ReplicaRecord> => {
      const replica = (await world.replicas())[index];
      if (replica === undefined) throw new Error(`there are at most ${index} replicas`);
      await world.store.replicas.update(replica, { endRequestedAt: world.clock.now() });
      return replica;
    };
    const disk = { isFull: false };
    world.onStoreCall = (when, call) => {
      const isUnconfirmed = call === 'commit' && when === 'after';
      if (isUnconfirmed || (disk.isFull && ['commit', 'update'].includes(call))) {
        disk.isFull = true;
        throw new SvcError('SVC_DATABASE', 'The state database does not answer.');
      }
    };
    const first = await end(0);
    for (let step = 0; step < 100 && !disk.isFull; step += 1) await world.clock.advance(100);
    // Each pass has a decision that it cannot write.
    const second = await end(1);
    const isLeft = (): boolean => world.cloud.living.some(({ id }) => id === first.machineId);
    const stateOf = ({ id }: ReplicaRecord): string | undefined => world.endpoints.find((one) => one.id === id)?.state;
    for (let step = 0; step < 1_000 && isLeft() && stateOf(first) === 'serving'; step += 1) await world.clock.advance(100);
    expect([isLeft(), stateOf(first), stateOf(second)]).toEqual([true, 'draining', 'serving']);
  });
});
