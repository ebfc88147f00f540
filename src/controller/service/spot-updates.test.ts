import { expect, test } from 'vitest';
import { anOffer, aServiceSpec, someResources } from '../../../test/support/builders.ts';
import { updateWorld, withWorld, type World } from '../../../test/support/service-world.ts';
import { isAlive } from '../../domain/replica/replica-state.ts';
import { defaultUpdate, type ReplicaPolicy, type Task, type UpdateMode } from '../../domain/task.ts';
import { ProviderRefusal } from '../../providers/provider-refusal.ts';

const onDemand = anOffer({ provider: 'fake', region: 'r1', instanceType: 'small', hourlyUsd: 1 });
const offers = ['a', 'b'].flatMap((zone) => [
  { ...onDemand, zone },
  { ...onDemand, zone, spot: true, hourlyUsd: 0.3 },
]);

/** Version and market of the ready replicas. */
async function readyOf(world: World): Promise<readonly string[]> {
  const ready = (await world.replicas()).filter(({ state }) => state === 'READY');
  return ready.map(({ version, market }) => `${version} ${market}`);
}

/** Advances until no other replicas are ready. Returns the fewest ready ones, and the most living ones with a machine. */
async function untilReady(world: World, version: number, market: string): Promise<{ readonly fewest: number; readonly most: number }> {
  let [fewest, most] = [Number.POSITIVE_INFINITY, 0];
  const isReached = async (): Promise<boolean> => {
    const found = await readyOf(world);
    return found.length >= 3 && found.every((one) => one === `${version} ${market}`);
  };
  for (let second = 0; second < 1_800 && !(await isReached()); second += 1) {
    await world.clock.advance(1_000);
    await world.clock.settle();
    const replicas = await world.replicas();
    fewest = Math.min(fewest, replicas.filter(({ state }) => state === 'READY').length);
    most = Math.max(most, replicas.filter(({ state, machineId }) => isAlive(state) && machineId !== null).length);
  }
  return { fewest, most };
}

const cases: readonly (readonly [UpdateMode, string, Partial<ReplicaPolicy>])[] = [
  ['rolling', 'dynamic_ondemand_fallback', { dynamicOndemandFallback: true }],
  ['canary', 'dynamic_ondemand_fallback', { dynamicOndemandFallback: true }],
  ['rolling', 'the hedge', { spotPlacer: 'hedge' }],
  ['canary', 'the hedge', { spotPlacer: 'hedge' }],
];

test('without a surge, an update replaces an old spot replica on demand', async () => {
  const spec = aServiceSpec({ update: { ...defaultUpdate, surge: 0, maxUnavailable: 1 } });
  const policy = { dynamicOndemandFallback: true, minReplicas: 3, maxReplicas: 3 };
  const resources = { order: 'any', choices: [someResources({ useSpot: true })] } as const;
  await withWorld(
    async (world) => {
      Object.assign(world.cloud.conduct, { bootMs: 3_000 });
      await untilReady(world, 1, 'spot');
      world.cloud.conduct.answerTo = (offer) =>
        offer.spot ? { refusal: new ProviderRefusal('capacity', 'zone', 'fake: no spot machine is left.') } : {};
      await updateWorld(world, { run: 'another program' });
      expect((await untilReady(world, 2, 'on-demand')).fewest).toBe(2);
      expect(new Set(await readyOf(world))).toEqual(new Set(['2 on-demand']));
    },
    policy,
    1,
    offers,
    { resources, service: { ...spec, replicaPolicy: { ...spec.replicaPolicy, ...policy } } },
  );
});

test.for(cases)('while spot is refused, a %s update with %s starts on demand', async ([mode, , placement]) => {
  const spec = aServiceSpec({ update: { ...defaultUpdate, mode, bakeSeconds: 20 } });
  const policy = { ...placement, minReplicas: 3, maxReplicas: 3 };
  const task: Partial<Task> = {
    resources: { order: 'any', choices: [someResources({ useSpot: true })] },
    service: { ...spec, replicaPolicy: { ...spec.replicaPolicy, ...policy } },
  };
  await withWorld(
    async (world) => {
      Object.assign(world.cloud.conduct, { bootMs: 3_000 });
      await untilReady(world, 1, 'spot');
      expect(new Set(await readyOf(world))).toEqual(new Set(['1 spot']));
      world.cloud.conduct.answerTo = (offer) =>
        offer.spot ? { refusal: new ProviderRefusal('capacity', 'zone', 'fake: no spot machine is left.') } : {};
      await updateWorld(world, { run: 'another program' }, mode);
      expect(await untilReady(world, 2, 'on-demand')).toEqual({ fewest: 3, most: 4 });
      await world.clock.advance(5_000);
      const causes = (await world.store.events.list({ subject: 'chat' })).map(({ cause }) => cause);
      expect(causes).toContain('updated');
      world.cloud.conduct.answerTo = () => ({});
      expect((await untilReady(world, 2, 'spot')).fewest).toBe(3);
      expect(new Set(await readyOf(world))).toEqual(new Set(['2 spot']));
    },
    policy,
    1,
    offers,
    task,
  );
});
