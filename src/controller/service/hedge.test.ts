import { expect, test } from 'vitest';
import { anOffer, someResources } from '../../../test/support/builders.ts';
import { updateWorld, withWorld, type World } from '../../../test/support/service-world.ts';
import { isAlive } from '../../domain/replica/replica-state.ts';
import { ProviderRefusal } from '../../providers/provider-refusal.ts';

const onDemandOffer = anOffer({ provider: 'fake', region: 'r1', instanceType: 'small', hourlyUsd: 1 });
const inZone = (zone: string, hourlyUsd = 0.3) => ({ ...onDemandOffer, zone, spot: true, hourlyUsd });
const offers = [onDemandOffer, inZone('a'), inZone('b'), inZone('c')];
const change = { resources: { order: 'any', choices: [someResources({ useSpot: true })] } } as const;
const inRegion = (region: string) => ({ resources: { order: 'any', choices: [someResources({ region, useSpot: true })] } }) as const;
const policy = { spotPlacer: 'hedge' } as const;

/** Zones of the living replicas with a machine, the on-demand ones as `od`. */
async function zonesOf(world: World): Promise<readonly string[]> {
  const living = (await world.replicas()).filter(({ state, machineId }) => isAlive(state) && machineId !== null);
  return living.map(({ offer }) => (offer?.spot === true ? String(offer.zone) : 'od')).toSorted();
}

async function advance(world: World, seconds: number): Promise<void> {
  for (let second = 0; second < seconds; second += 1) {
    await world.clock.advance(1_000);
    await world.clock.settle();
  }
}

test('the hedge spreads spot replicas over zones, and what it learns of them survives a restart', async () => {
  await withWorld(
    async (world) => {
      await world.untilReady(2);
      await advance(world, 120);
      const first = await zonesOf(world);
      expect(new Set(first.filter((zone) => zone !== 'od')).size).toBeGreaterThanOrEqual(2);
      const lost = (await world.replicas()).find(({ offer, state }) => offer?.zone === 'a' && isAlive(state));
      const machine = world.cloud.living.find(({ id }) => id === lost?.machineId);
      if (machine === undefined) throw new Error('no replica is in zone a');
      world.cloud.preempt(machine.id);
      await advance(world, 30);
      await world.crash();
      const histories = await world.store.zones.list();
      expect(histories['fake|r1|a']?.losses).toBeGreaterThan(0.9);
      expect([histories['fake|r1|b']?.losses, histories['fake|r1|b']?.isOpen]).toEqual([0, true]);
      await world.start();
      await advance(world, 120);
      expect(await zonesOf(world)).not.toContain('a');
    },
    policy,
    1,
    offers,
    change,
  );
});

test('a file with spot machines only and no policy uses the hedge where spot has several zones', async () => {
  for (const [given, usesFallback] of [
    [offers, true],
    [[onDemandOffer, inZone('a')], false],
  ] as const) {
    await withWorld(
      async (world) => {
        await world.untilReady(2);
        world.cloud.conduct.answerTo = ({ spot }) =>
          spot ? { refusal: new ProviderRefusal('capacity', 'zone', 'fake: no spot machine is left.') } : {};
        for (const { id } of world.cloud.living) world.cloud.preempt(id);
        await advance(world, 60);
        expect((await zonesOf(world)).includes('od')).toBe(usesFallback);
      },
      {},
      1,
      given,
      change,
    );
  }
});

test('with one zone left, the hedge stacks its spot replicas there', async () => {
  await withWorld(
    async (world) => {
      world.cloud.conduct.answerTo = ({ spot, zone }) =>
        spot && zone !== 'b' ? { refusal: new ProviderRefusal('capacity', 'zone', 'fake: no spot machine is left.') } : {};
      await world.untilReady(2);
      await advance(world, 180);
      expect((await zonesOf(world)).filter((zone) => zone === 'b').length).toBeGreaterThanOrEqual(2);
    },
    policy,
    1,
    offers,
    change,
  );
});

test('an interruption notice is one event and one loss, also after a restart', async () => {
  await withWorld(
    async (world) => {
      await world.untilReady(2);
      await advance(world, 60);
      const replica = (await world.replicas()).find(({ offer, state }) => offer?.zone === 'a' && isAlive(state));
      const machine = world.cloud.living.find(({ id }) => id === replica?.machineId);
      if (replica === undefined || machine === undefined) throw new Error('no replica is in zone a');
      // No other machine comes, so the replica serves on.
      world.cloud.conduct.bootMs = 900_000;
      world.cloud.announce(machine.id, { kind: 'interruption', at: world.clock.now() + 600_000 });
      await advance(world, 10);
      const noticed = (await world.store.zones.list())['fake|r1|a'];
      const saved = (await world.store.services.get('chat'))?.memory.placement?.refusals[0]?.at;
      await advance(world, 10);
      expect((await world.store.zones.list())['fake|r1|a']).toEqual(noticed);
      expect(saved).toBeDefined();
      expect((await world.store.services.get('chat'))?.memory.placement?.refusals[0]?.at).toBe(saved);
      await advance(world, 100);
      await world.crash();
      await world.start();
      await advance(world, 20);
      expect((await world.states())[replica.id - 1]).toBe(`${replica.id} READY`);
      world.cloud.preempt(machine.id);
      await advance(world, 20);
      const causes = (await world.historyOf(replica.id)).map(([cause]) => cause);
      expect(causes.filter((cause) => cause === 'interruption-notice').length).toBe(1);
      const after = (await world.store.zones.list())['fake|r1|a'];
      expect([after?.losses, after?.changedAt]).toEqual([noticed?.losses, noticed?.changedAt]);
    },
    policy,
    1,
    offers,
    change,
  );
});

test('after an update to other regions, the hedge knows only their zones', async () => {
  const otherRegion = { ...onDemandOffer, region: 'r2', hourlyUsd: 2 };
  const one = { ...otherRegion, zone: 'x', spot: true, hourlyUsd: 0.9 };
  for (const [given, usesFallback] of [
    [[one], false],
    [[one, { ...one, zone: 'y' }, { ...one, zone: 'z' }], true],
  ] as const) {
    await withWorld(
      async (world) => {
        await world.untilReady(2);
        await updateWorld(world, { ...inRegion('r2'), run: 'another program' });
        await advance(world, 120);
        const zones = await zonesOf(world);
        expect(zones.every((zone) => given.some((offer) => offer.zone === zone))).toBe(true);
        expect(new Set(zones).size).toBe(Math.min(given.length, zones.length));
        world.cloud.conduct.answerTo = ({ spot }) =>
          spot ? { refusal: new ProviderRefusal('capacity', 'zone', 'fake: no spot machine is left.') } : {};
        for (const { id } of world.cloud.living) world.cloud.preempt(id);
        await advance(world, 60);
        // As the default, the hedge needs several zones: those of the earlier version do not count.
        expect((await zonesOf(world)).includes('od')).toBe(usesFallback);
      },
      {},
      1,
      [...offers, otherRegion, ...given],
      inRegion('r1'),
    );
  }
});

test('a recommended replica serves until its replacement is ready, also over a restart', async () => {
  await withWorld(
    async (world) => {
      await world.untilReady(2);
      await advance(world, 120);
      const before = await zonesOf(world);
      const replica = (await world.replicas()).find(({ offer, state }) => offer?.zone === 'a' && isAlive(state));
      const machine = world.cloud.living.find(({ id }) => id === replica?.machineId);
      if (replica === undefined || machine === undefined) throw new Error('no replica is in zone a');
      world.cloud.conduct.bootMs = 60_000;
      world.cloud.announce(machine.id, { kind: 'rebalance', at: undefined });
      await advance(world, 30);
      const during = await zonesOf(world);
      expect([during.length, during.includes('od')]).toEqual([before.length + 1, false]);
      expect(during.filter((zone) => zone === 'a')).toEqual(before.filter((zone) => zone === 'a'));
      await world.crash();
      // The provider repeats the recommendation late.
      machine.notice = undefined;
      await world.start();
      await advance(world, 20);
      const states = await world.states();
      expect(states).toContain(`${replica.id} READY`);
      expect(states.filter((state) => state.endsWith(' PROVISIONING')).length).toBe(1);
      await advance(world, 60);
      expect((await world.replicas()).find(({ id }) => id === replica.id)?.state).toBe('PREEMPTED');
      expect((await zonesOf(world)).length).toBe(before.length);
      const causes = (await world.historyOf(replica.id)).map(([cause]) => cause);
      expect(causes.filter((cause) => cause === 'rebalance-recommendation').length).toBe(1);
    },
    policy,
    1,
    offers,
    change,
  );
});
