import type { SpotTrace } from './spot-world.ts';

interface BoundOptions {
  /** Ready replicas at any time. */
  readonly target: number;
  readonly coldStartSeconds: number;
}

/** Mean replicas of the bound, relative to the target. */
interface SpotBound {
  readonly spot: number;
  readonly onDemand: number;
}

/**
 * The fewest on-demand replicas of any policy that always has enough ready ones, with hindsight. A spot replica can be
 * ready only where its zone had room for the whole cold start. Starts cost nothing here, so no policy reaches it.
 */
export function leastOnDemand({ capacity, gapSeconds }: SpotTrace, { target, coldStartSeconds }: BoundOptions): SpotBound {
  const steps = capacity[0]?.length ?? 0;
  const whole = Math.floor(coldStartSeconds / gapSeconds);
  /** The share of a step in which one more step before it counts. */
  const share = coldStartSeconds / gapSeconds - whole;
  let spot = 0;
  for (let step = 0; step < steps; step += 1) {
    const ready = (back: number): number =>
      Math.min(
        target,
        capacity.reduce((sum, zone) => sum + leastRoom(zone, step - back, step), 0),
      );
    spot += share * ready(whole + 1) + (1 - share) * ready(whole);
  }
  const mean = spot / Math.max(1, steps) / target;
  return { spot: mean, onDemand: 1 - mean };
}

/** The least room of a zone over steps, both ends included. What was before the trace is as its first step. */
function leastRoom(zone: readonly number[], from: number, to: number): number {
  let least = Number.POSITIVE_INFINITY;
  for (let step = Math.max(0, from); step <= to; step += 1) least = Math.min(least, zone[step] ?? 0);
  return least;
}
