import type { Random } from '../shared/random.ts';
import { seededRandom } from '../shared/random.ts';
import type { SpotPolicyOf, SpotTrace, SpotWorld } from './spot-fleet.ts';
import type { SpotOptions } from './spot-world.ts';

/** Every replica on demand: the cost that all others are relative to. */
export const onDemandOnly: SpotPolicyOf = () => ({ step: (world) => world.setOnDemand(world.target) });

/** Spot in one zone. */
export const oneZone =
  (zone: number): SpotPolicyOf =>
  () => ({ step: (world) => launchUpTo(world, world.target, () => zone) });

/**
 * A fixed share per zone, retried in the same zone for ever, as an instance group with a fixed spread does. The first
 * zones of `order` get the remainder.
 */
export const evenSpread =
  (order: readonly number[]): SpotPolicyOf =>
  () => ({
    step: (world) => {
      const share = Math.floor(world.target / order.length);
      for (const [index, zone] of order.entries()) {
        const count = share + (index < world.target % order.length ? 1 : 0);
        endSurplus(
          world,
          world.spot.filter((replica) => replica.zone === zone),
          count,
        );
        for (let more = count - world.inZone(zone); more > 0; more -= 1) world.launchSpot(zone);
      }
    },
  });

/** Each launch asks the next zone in turn. */
export const roundRobin =
  (seed: number): SpotPolicyOf =>
  (_, zones) => {
    const order = shuffled(zones, seededRandom(seed));
    let turn = 0;
    return { step: (world) => launchUpTo(world, world.target, () => order[turn++ % order.length] ?? 0) };
  };

/**
 * SpotHedge (SkyServe, EuroSys 2025). A loss or a refusal makes a zone "preempting", a ready replica "active". When too
 * few zones are active, all are again: fewer than two in the paper and in SkyPilot; the artifact of the paper counts
 * differently, which shows with three zones.
 */
export const spotHedge =
  (extra: number, rule: 'paper' | 'artifact', seed: number): SpotPolicyOf =>
  (_, zones) => {
    const random = seededRandom(seed);
    const all = zones.map((_name, zone) => zone);
    const fewest = rule === 'paper' ? 2 : Math.min(1, zones.length - 3) + 1;
    let active = new Set(all);
    const onLoss = (zone: number): void => {
      active.delete(zone);
      if (active.size < fewest) active = new Set(all);
    };
    const next = (world: SpotWorld): number => {
      const empty = [...active].filter((zone) => world.inZone(zone) === 0);
      return pick(empty.length > 0 ? empty : [...active], random) ?? 0;
    };
    return {
      onLoss,
      onReady: (zone) => active.add(zone),
      step: (world) => {
        const { target } = world;
        launchUpTo(world, target + extra, () => next(world), onLoss);
        const ready = world.spot.filter(({ readyAt }) => readyAt <= world.now).length;
        world.setOnDemand(Math.max(0, Math.min(target, target + extra - ready)));
      },
    };
  };

/** Ends the replicas beyond a number: those that start first, then the newest. */
function endSurplus(world: SpotWorld, replicas: SpotWorld['spot'], count: number): void {
  // The newest are last, and all take the same time to start.
  for (const replica of replicas.slice(count)) world.endSpot(replica);
}

/** Asks once for each missing replica, or ends the surplus ones. */
function launchUpTo(world: SpotWorld, count: number, zoneOf: () => number, onRefusal?: (zone: number) => void): void {
  endSurplus(world, world.spot, count);
  for (let missing = count - world.spot.length; missing > 0; missing -= 1) {
    const zone = zoneOf();
    if (!world.launchSpot(zone)) onRefusal?.(zone);
  }
}

function pick(zones: readonly number[], random: Random): number | undefined {
  return zones[Math.floor(random() * zones.length)];
}

function shuffled(zones: readonly string[], random: Random): readonly number[] {
  const keyed = zones.map((_, zone) => ({ zone, key: random() }));
  return keyed.toSorted((a, b) => a.key - b.key).map(({ zone }) => zone);
}

/**
 * A lower bound of the cost of enough replicas at all times: spot whenever zones have room, without cold starts, and
 * on demand otherwise.
 */
export function leastSpotCost({ capacity }: SpotTrace, { target, onDemandPrice }: Pick<SpotOptions, 'target' | 'onDemandPrice'>): number {
  const steps = capacity[0]?.length ?? 0;
  let onDemand = 0;
  for (let step = 0; step < steps; step += 1) {
    const room = capacity.reduce((sum, zone) => sum + (zone[step] ?? 0), 0);
    onDemand += Math.max(0, target - room);
  }
  const share = onDemand / (target * steps);
  return share + (1 - share) / onDemandPrice;
}
