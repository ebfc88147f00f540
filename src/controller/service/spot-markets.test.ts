import { expect, test } from 'vitest';
import { anOffer, someResources } from '../../../test/support/builders.ts';
import { updateWorld, withWorld, type World } from '../../../test/support/service-world.ts';
import { isAlive } from '../../domain/replica/replica-state.ts';
import { ProviderRefusal } from '../../providers/provider-refusal.ts';

const onDemandOffer = anOffer({ provider: 'fake', region: 'r1', instanceType: 'small', hourlyUsd: 1 });
const offers = [onDemandOffer, { ...onDemandOffer, spot: true, hourlyUsd: 0.3 }];
const resources = { order: 'any', choices: [someResources({ useSpot: true })] } as const;
const dynamic = { dynamicOndemandFallback: true };

/** Markets of the living replicas with a machine, and whether the machine is spot. */
async function machinesOf(world: World): Promise<readonly string[]> {
  const living = (await world.replicas()).filter(({ state, machineId }) => isAlive(state) && machineId !== null);
  return living.map(({ market, offer }) => `${market} ${offer?.spot === true ? 'spot' : 'on-demand'}`).toSorted();
}

const refuseSpot = (world: World): void => {
  world.cloud.conduct.answerTo = ({ spot }) =>
    spot ? { refusal: new ProviderRefusal('capacity', 'zone', 'fake: no spot machine is left.') } : {};
};

test('on-demand replicas serve while spot is refused, and end after spot replicas are ready', async () => {
  await withWorld(
    async (world) => {
      refuseSpot(world);
      await world.untilReady(2);
      expect(await machinesOf(world)).toEqual(['on-demand on-demand', 'on-demand on-demand']);
      world.cloud.conduct.answerTo = () => ({});
      const isSpotOnly = async (): Promise<boolean> => (await machinesOf(world)).join() === 'spot spot,spot spot';
      for (let second = 0; second < 300 && !(await isSpotOnly()); second += 1) {
        await world.clock.advance(1_000);
        const ready = (await world.states()).filter((state) => state.endsWith(' READY')).length;
        expect(ready).toBeGreaterThanOrEqual(2);
      }
      expect(await machinesOf(world)).toEqual(['spot spot', 'spot spot']);
    },
    dynamic,
    1,
    offers,
    { resources },
  );
});

test('a control that is killed at any call launches no replica in the other market', async () => {
  for (let call = 1; call <= 6; call += 1) {
    for (const when of ['before', 'after'] as const) {
      await withWorld(
        async (world) => {
          world.crashAtCall(call, when);
          for (let step = 0; step < 100 && !world.isDead; step += 1) await world.clock.advance(100);
          world.cloud.conduct.onCall = () => undefined;
          await world.crash();
          await world.start();
          await world.untilReady(2);
          for (let second = 0; second < 60; second += 1) await world.clock.advance(1_000);
          expect((await machinesOf(world)).every((one) => one === 'spot spot')).toBe(true);
          const all = await world.replicas();
          expect(all.filter(({ market, offer }) => offer !== null && offer.spot !== (market === 'spot'))).toEqual([]);
          expect(world.cloud.living.length).toBe(2);
        },
        dynamic,
        call,
        offers,
        { resources },
      );
    }
  }
});

test('a blue-green update without spot machines gets its fallback on demand', async () => {
  await withWorld(
    async (world) => {
      const advance = async (seconds: number): Promise<void> => {
        for (let second = 0; second < seconds; second += 1) {
          await world.clock.advance(1_000);
          await world.clock.settle();
        }
      };
      const readyOf = async (version: number): Promise<readonly string[]> =>
        (await world.replicas())
          .flatMap((one) => (one.version === version && one.state === 'READY' ? [String(one.market)] : []))
          .toSorted();
      await advance(60);
      expect(await readyOf(1)).toEqual(['spot', 'spot', 'spot']);
      refuseSpot(world);
      await updateWorld(world, { run: 'another program' }, 'blue_green');
      await advance(60);
      expect([await readyOf(1), await readyOf(2)]).toEqual([
        ['spot', 'spot', 'spot'],
        ['on-demand', 'on-demand'],
      ]);
      const events = await world.store.events.list({ subject: 'chat' });
      expect(events.map(({ cause }) => cause)).toContain('update-switched');
      await advance(300);
      expect([await readyOf(1), await readyOf(2)]).toEqual([[], ['on-demand', 'on-demand']]);
      world.cloud.conduct.answerTo = () => ({});
      await advance(120);
      expect(await readyOf(2)).toEqual(['spot', 'spot', 'spot']);
      expect((await world.store.events.list({ subject: 'chat' })).map(({ cause }) => cause)).toContain('updated');
    },
    { ...dynamic, numOverprovision: 1 },
    1,
    offers,
    { resources },
  );
});
