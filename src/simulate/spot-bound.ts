import type { SpotTrace } from './spot-fleet.ts';

interface BoundOptions {
  /** Ready replicas at any time. */
  readonly target: number;
  readonly coldStartSeconds: number;
  /** Price of a spot replica in each zone, relative to one on demand. */
  readonly spotPrices: readonly number[];
}

/** Mean replicas of the bound and their price, relative to the target on demand. */
interface SpotBound {
  readonly spot: number;
  readonly onDemand: number;
  readonly cost: number;
}

/**
 * The fewest on-demand replicas of any policy that always has enough ready ones, with hindsight. A spot replica can be
 * ready only where its zone had room for the whole cold start. Starts cost nothing here, so no policy reaches it.
 */
export function leastOnDemand({ capacity, gapSeconds }: SpotTrace, { target, coldStartSeconds, spotPrices }: BoundOptions): SpotBound {
  const steps = capacity[0]?.length ?? 0;
  const whole = Math.floor(coldStartSeconds / gapSeconds);
  /** The share of a step in which one more step before it counts. */
  const share = coldStartSeconds / gapSeconds - whole;
  const sum = { spot: 0, price: 0 };
  for (let step = 0; step < steps; step += 1) {
    for (const [back, weight] of [
      [whole + 1, share],
      [whole, 1 - share],
    ] as const) {
      const rooms = capacity.map((zone) => leastRoom(zone, step - back, step));
      const { spot, price } = cheapestSpot(rooms, spotPrices, target);
      sum.spot += weight * spot;
      sum.price += weight * price;
    }
  }
  const total = Math.max(1, steps) * target;
  const spot = sum.spot / total;
  return { spot, onDemand: 1 - spot, cost: sum.price / total + 1 - spot };
}

/** Up to `most` spot replicas in the cheapest zones, where they cost less than on demand, and their price. */
export function cheapestSpot(
  rooms: readonly number[],
  spotPrices: readonly number[],
  most: number,
): { readonly spot: number; readonly price: number } {
  const zones = rooms.map((room, zone) => ({ room, price: spotPrices[zone] ?? 1 })).toSorted((a, b) => a.price - b.price);
  let [spot, price] = [0, 0];
  for (const zone of zones) {
    if (zone.price >= 1) break;
    const count = Math.min(zone.room, most - spot);
    spot += count;
    price += count * zone.price;
  }
  return { spot, price };
}

/** The least room of a zone over steps, both ends included. What was before the trace is as its first step. */
export function leastRoom(zone: readonly number[], from: number, to: number): number {
  let least = Number.POSITIVE_INFINITY;
  for (let step = Math.max(0, from); step <= to; step += 1) least = Math.min(least, zone[step] ?? 0);
  return least;
}
