import { expect, test } from 'vitest';
import { anOffer, aServiceSpec, someResources } from '../../../test/support/builders.ts';
import { withWorld, type World } from '../../../test/support/service-world.ts';
import { isEnded } from '../../domain/replica/replica-state.ts';
import type { Task } from '../../domain/task.ts';
import { ProviderRefusal } from '../../providers/provider-refusal.ts';

const cheap = anOffer({ provider: 'fake', region: 'r1', instanceType: 'small', cpus: 4, memoryGb: 16, hourlyUsd: 1 });
const dear = { ...cheap, region: 'r2', hourlyUsd: 3 };

const limitedTo = (maxHourlyCost: number, replicas: number): Partial<Task> => {
  const spec = aServiceSpec({ maxHourlyCost });
  const replicaPolicy = { ...spec.replicaPolicy, minReplicas: replicas, maxReplicas: replicas };
  return { resources: { order: 'any', choices: [someResources()] }, service: { ...spec, replicaPolicy } };
};

const refuseCheap = ({ cloud }: World): void => {
  cloud.conduct.answerTo = ({ region }) =>
    region === 'r1' ? { refusal: new ProviderRefusal('capacity', 'zone', 'fake: no machine is left.') } : {};
};

async function billOf(world: World): Promise<number> {
  return (await world.replicas()).filter(({ state }) => !isEnded(state)).reduce((sum, { offer }) => sum + (offer?.hourlyUsd ?? 0), 0);
}

test('a replacement that finds only a dearer machine waits within the limit, and says why', async () => {
  await withWorld(
    async (world) => {
      await world.untilReady(2);
      refuseCheap(world);
      const [first] = world.cloud.living;
      if (first !== undefined) world.cloud.preempt(first.id);
      for (let second = 0; second < 120; second += 1) {
        await world.clock.advance(1_000);
        expect(await billOf(world)).toBeLessThanOrEqual(3);
      }
      const replacement = (await world.replicas()).at(-1);
      expect(replacement?.reason).toBe(
        'max_hourly_cost leaves 2.00 $/h for this replica, and small at fake/r2 costs 3.00 $/h. It is asked for once the other replicas cost less.',
      );
      expect((await world.historyOf(replacement?.id ?? 0)).filter(([cause]) => cause === 'cost-limit').length).toBeGreaterThan(0);
      world.cloud.conduct.answerTo = () => ({});
      await world.untilReady(2);
      expect(await billOf(world)).toBe(2);
    },
    { minReplicas: 2 },
    1,
    [cheap, dear],
    limitedTo(3, 2),
  );
});

test('a first replica that costs more than the limit is not launched', async () => {
  await withWorld(
    async (world) => {
      await world.clock.advance(60_000);
      expect(world.cloud.machines.size).toBe(0);
      const [only] = await world.replicas();
      expect([only?.state, only?.reason]).toEqual(['PENDING', expect.stringContaining('max_hourly_cost leaves 2.50 $/h')]);
      // The wait is recorded once, not with each comparison.
      expect((await world.historyOf(1)).map(([cause]) => cause)).toEqual(['replica-requested', 'cost-limit']);
    },
    { minReplicas: 1 },
    1,
    [dear],
    limitedTo(2.5, 1),
  );
});

test('concurrent launches stay within the limit while their machines are being created', async () => {
  await withWorld(
    async (world) => {
      Object.assign(world.cloud.conduct, { callMs: 2_000 });
      await world.untilReady(1);
      refuseCheap(world);
      for (let second = 0; second < 120; second += 1) {
        await world.clock.advance(1_000);
        expect(await billOf(world)).toBeLessThanOrEqual(6);
        expect(world.cloud.living.reduce((sum, { offer }) => sum + offer.hourlyUsd, 0)).toBeLessThanOrEqual(6);
      }
      // One cheap replica and one dear one: the other two find nothing for the rest.
      expect(await billOf(world)).toBe(4);
    },
    { minReplicas: 4 },
    1,
    [cheap, dear],
    limitedTo(6, 4),
  );
});
