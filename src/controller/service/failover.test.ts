import { expect, test } from 'vitest';
import { anOffer } from '../../../test/support/builders.ts';
import { withWorld, type World } from '../../../test/support/service-world.ts';
import { ProviderRefusal } from '../../providers/provider-refusal.ts';
import type { Offer } from '../../providers/provider.ts';
import { seededRandom } from '../../shared/random.ts';

const inRegion = (region: string, hourlyUsd: number, change: Partial<Offer> = {}): Offer =>
  anOffer({ provider: 'fake', region, instanceType: 'small', hourlyUsd, ...change });
const market = [inRegion('full', 1), inRegion('hangs', 2), inRegion('good', 3), inRegion('better', 3), inRegion('dear', 9)];

/** The first location is out of capacity, and the second one refuses slowly. */
function scarce(world: World): void {
  Object.assign(world.cloud.conduct, {
    callMs: 40,
    bootMs: 3_000,
    jobOf: () => ({ setupMs: 500, readyAfterMs: 800 }),
    answerTo: ({ region }: Offer) => ({
      afterMs: region === 'hangs' ? 9_000 : 200,
      refusal: region === 'full' || region === 'hangs' ? new ProviderRefusal('capacity', 'zone', `${region} has none.`) : undefined,
    }),
  });
}

const regionsOf = (world: World): readonly string[] => world.cloud.living.map(({ offer }) => offer.region).toSorted();

async function terminateService(world: World): Promise<void> {
  const service = await world.store.services.get('chat');
  if (service !== undefined) await world.store.services.update(service, { desired: 'down' });
}

async function isGone(world: World): Promise<boolean> {
  return (await world.store.services.get('chat')) === undefined;
}

// 8 seeds of 26 crashes: 208 points.
test.for([1, 2, 3, 4, 5, 6, 7, 8])('killed during any call, a reconciler leaves no orphan and no duplicate (seed %d)', async (seed) => {
  const random = seededRandom(seed);
  await withWorld(
    async (world) => {
      scarce(world);
      let crashes = 0;
      const crashSoon = async (isOver: () => Promise<boolean>): Promise<number> => {
        world.crashAtCall(1 + Math.floor(random() * 9), random() < 0.5 ? 'before' : 'after');
        const until = world.clock.now() + 30_000;
        while (!world.isDead && world.clock.now() < until && !(await isOver())) await world.clock.advance(100);
        const hasCrashed = world.isDead;
        world.cloud.conduct.onCall = () => undefined;
        await world.crash();
        await world.start();
        return hasCrashed ? 1 : 0;
      };
      for (let round = 0; crashes < 20; round += 1) {
        // Programs end now and then: each round has machines to remove and to launch.
        if (round % 3 === 0) world.cloud.living[0]?.killProgram();
        if (round % 7 === 5) for (const { id } of world.cloud.living.slice(0, 1)) world.cloud.preempt(id);
        crashes += await crashSoon(async () => false);
      }
      await world.untilReady(2);
      await world.clock.advance(130_000);
      expect(world.cloud.living).toHaveLength(2);
      await terminateService(world);
      for (let round = 0; crashes < 26 && !(await isGone(world)); round += 1) {
        crashes += await crashSoon(() => isGone(world));
        if (crashes < 26 && round > 40) break;
      }
      const until = world.clock.now() + 300_000;
      while (!(await isGone(world)) && world.clock.now() < until) await world.clock.advance(1_000);
      expect([await isGone(world), world.cloud.living.length]).toEqual([true, 0]);
    },
    {},
    seed,
    market,
  );
});

test('replicas launch where capacity is; an interrupted search skips the full location after restart', async () => {
  await withWorld(
    async (world) => {
      scarce(world);
      await world.clock.advance(1_000);
      await world.crash();
      await world.start();
      await world.untilReady(2);
      expect(regionsOf(world)).toEqual(['better', 'good']);
      const asked = (await world.store.events.list({ subject: 'chat' })).filter(({ message }) => message.startsWith('Asking fake/full'));
      expect(asked).toHaveLength(1);
    },
    {},
    1,
    market,
  );
});

test('after mass preemption of spot machines, all replacements launch in another region', async () => {
  const spot = [inRegion('a', 1, { spot: false }), inRegion('b', 2)];
  await withWorld(
    async (world) => {
      await world.untilReady(2);
      expect(regionsOf(world)).toEqual(['a', 'a']);
      world.cloud.conduct.answerTo = ({ region }) => ({
        refusal: region === 'a' ? new ProviderRefusal('capacity', 'region', 'none left.') : undefined,
      });
      for (const { id } of world.cloud.living) world.cloud.preempt(id);
      await world.clock.advance(10_000);
      await world.untilReady(2);
      expect(regionsOf(world)).toEqual(['b', 'b']);
    },
    {},
    1,
    spot,
  );
});

test('an unresponsive region costs only its own replicas', async () => {
  const two = [inRegion('a', 1), inRegion('b', 1)];
  await withWorld(
    async (world) => {
      await world.untilReady(2);
      expect(regionsOf(world)).toEqual(['a', 'b']);
      world.cloud.conduct.answerTo = ({ region }) => (region === 'a' ? { afterMs: Number.POSITIVE_INFINITY } : {});
      for (const { id, offer } of world.cloud.living) if (offer.region === 'a') world.cloud.preempt(id);
      await world.clock.advance(6_000);
      expect(await world.untilReady(2)).toBeLessThan(30_000);
      expect(regionsOf(world)).toEqual(['b', 'b']);
    },
    {},
    1,
    two,
  );
});
