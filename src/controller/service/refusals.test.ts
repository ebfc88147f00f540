import { expect, test } from 'vitest';
import { withWorld, type World } from '../../../test/support/service-world.ts';
import { anOffer } from '../../../test/support/builders.ts';
import { ProviderRefusal } from '../../providers/provider-refusal.ts';
import { retryAfterStart, retryAtNextStart, retryService } from '../retry-service.ts';

const offers = Array.from({ length: 20 }, (_, index) =>
  anOffer({ provider: 'fake', region: `r${index}`, instanceType: 'small', hourlyUsd: 1 + index }),
);

const serviceOf = async ({ store }: World) => {
  const service = await store.services.get('chat');
  if (service === undefined) throw new Error('the service is gone');
  return service;
};

/** Advances virtual time in small steps until the condition holds: launches write real files. */
async function until(world: World, isSo: () => Promise<boolean>, limitMs = 60_000): Promise<void> {
  const end = world.clock.now() + limitMs;
  while (!(await isSo())) {
    if (world.clock.now() > end) throw new Error(`not so after ${limitMs} ms: ${(await world.states()).join(', ')}`);
    await world.clock.advance(50);
    for (let turn = 0; turn < 10; turn += 1) await world.clock.settle();
  }
}

const isRefused = async (world: World): Promise<boolean> => ((await serviceOf(world)).memory.placement?.refusals.length ?? 0) > 0;

/** Makes the provider refuse every machine because a permission is missing. */
function deny(world: World): void {
  world.cloud.conduct.answerTo = () => ({ refusal: new ProviderRefusal('permission', 'provider', 'fake: you may not.') });
}

test('a replica whose launch is refused keeps no offer', async () => {
  await withWorld(async (world) => {
    deny(world);
    await until(world, () => isRefused(world));
    const asked = (await world.store.replicas.list('chat')).filter(({ state }) => state === 'PROVISIONING');
    expect(asked.map(({ offer }) => offer)).toEqual([null]);
  });
});

test("a user's retry ends an active refusal", async () => {
  await withWorld(async (world) => {
    await world.untilReady(2);
    deny(world);
    for (const { id } of world.cloud.living.slice(0, 1)) world.cloud.preempt(id);
    await until(world, () => isRefused(world));
    world.cloud.conduct.answerTo = () => ({});
    await world.clock.advance(5_000);
    expect(world.cloud.living).toHaveLength(1);
    expect(await retryService(world, () => serviceOf(world))).toEqual({ refusals: 1 });
    expect(await world.untilReady(2)).toBeLessThan(15_000);
    expect((await serviceOf(world)).memory).toMatchObject({ placement: { refusals: [] } });
  });
});

test.for<readonly [what: string, kind: 'permission' | 'capacity', restart: (world: World) => Promise<void>]>([
  ['the reconciler restarts after a missing permission', 'permission', async () => undefined],
  ['the controller restarts after any refusal', 'capacity', (world) => retryAfterStart(world)],
])('when %s, the provider is asked at once', async ([, kind, restart]) => {
  await withWorld(async (world) => {
    await world.untilReady(2);
    world.cloud.conduct.answerTo = () => ({ refusal: new ProviderRefusal(kind, 'provider', 'no.') });
    for (const { id } of world.cloud.living.slice(0, 1)) world.cloud.preempt(id);
    await until(world, () => isRefused(world));
    world.cloud.conduct.answerTo = () => ({});
    await restart(world);
    await world.crash();
    await world.start();
    expect(await world.untilReady(2)).toBeLessThan(15_000);
  });
});

test('a launch refused by quota is retried once the old machine is gone', async () => {
  await withWorld(async (world) => {
    const { conduct } = world.cloud;
    // The old machine counts against the quota while its program ends.
    conduct.jobOf = () => ({ stopMs: 8_000 });
    await world.untilReady(2);
    const full = new ProviderRefusal('quota', 'region', 'VcpuLimitExceeded.');
    conduct.answerTo = () => ({ refusal: world.cloud.living.length >= 2 ? full : undefined });
    const [first] = await world.replicas();
    if (first !== undefined) await world.store.replicas.update(first, { endRequestedAt: world.clock.now() });
    await until(world, () => isRefused(world));
    // The refusal lasts a minute.
    expect(await world.untilReady(2)).toBeLessThan(30_000);
  });
});

test('a service that gave up launches again when a user requests it', async () => {
  await withWorld(async (world) => {
    world.cloud.conduct.jobOf = () => ({ runMs: 10, exitCode: 3, readyAfterMs: 60_000 });
    await until(world, async () => (await serviceOf(world)).memory.gaveUp, 600_000);
    world.cloud.conduct.jobOf = () => ({});
    expect((await retryService(world, () => serviceOf(world))).refusals).toBe(0);
    await world.untilReady(2);
  });
});

test('machines that end right after creation are limited, and their reason is shown', async () => {
  await withWorld(
    async (world) => {
      const said = 'Client.VolumeLimitExceeded: Volume limit exceeded';
      world.cloud.conduct.bootOf = () => ({ refused: { kind: 'quota', scope: 'whole-region', message: said } });
      const end = world.clock.now() + 50_000;
      await until(world, async () => world.clock.now() >= end);
      // Without a backoff there would be 39 in that time. Each replica may try two regions before the failure is seen
      // to affect more than one.
      expect(world.cloud.machines.size).toBeLessThanOrEqual(8);
      expect(Math.max(...[...world.cloud.machines.values()].map(({ offer }) => offer.hourlyUsd))).toBeLessThanOrEqual(4);
      const reasons = (await world.replicas()).map(({ reason }) => reason);
      expect(reasons.some((reason) => reason?.includes(said))).toBe(true);
      expect((await world.historyOf(1)).some(([cause, message]) => cause === 'boot-failed' && message.includes(said))).toBe(true);
    },
    {},
    1,
    offers,
  );
});

test("restarts of a crashing controller do not launch; a user's restart does", async () => {
  await withWorld(
    async (world) => {
      world.cloud.conduct.bootOf = () => ({ refused: { kind: 'quota', scope: 'whole-region', message: 'VolumeLimitExceeded' } });
      await until(world, () => isRefused(world));
      const restart = async (): Promise<void> => {
        await world.crash();
        await retryAfterStart(world);
        await world.start();
        await world.clock.advance(2_000);
      };
      // A backoff of one minute never ends within this time.
      for (let count = 0; count < 10; count += 1) await restart();
      expect(world.cloud.machines.size).toBe(1);
      world.cloud.conduct.bootOf = () => ({});
      await retryAtNextStart(world);
      await restart();
      expect(await world.untilReady(1)).toBeLessThan(15_000);
    },
    { minReplicas: 1, maxReplicas: 1 },
  );
});
