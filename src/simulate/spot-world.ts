import { SpotFleet, usualControlMs, type FleetOptions, type SpotPolicyOf, type SpotTrace } from './spot-fleet.ts';

/** A service with a constant load. */
export interface SpotOptions extends FleetOptions {
  /** Ready replicas that the service needs at any time. */
  readonly target: number;
  /** Constant load, as a share of the target's capacity. */
  readonly load?: number;
  /** Mean time of a request: what a lost replica was working on. */
  readonly requestMs?: number;
}

/** Scores of one run. All but the counts are shares; the first cold start is not scored, but paid. */
export interface SpotResult {
  /** Money, relative to the target's number of on-demand replicas. */
  readonly cost: number;
  /** Mean spot and on-demand replicas, relative to the target. */
  readonly spot: number;
  readonly onDemand: number;
  /** Time with enough ready replicas. */
  readonly available: number;
  /** Mean number of missing ready replicas, relative to the target. */
  readonly missing: number;
  /** Requests that exceed the ready replicas' capacity, or run on a replica when it is lost. */
  readonly failed: number;
  readonly lostPerDay: number;
  readonly refusedPerDay: number;
  /** Launches and ends by the policy, and losses. */
  readonly changesPerHour: number;
  readonly days: number;
}

/** Longest tick, s. Ticks divide the trace's steps, so that no step is stretched. */
const longestTickSeconds = 16;

/** The longest whole number of seconds that divides the trace's step and is at most 16; or that step. */
function tickSecondsOf(gapSeconds: number): number {
  for (let seconds = longestTickSeconds; seconds > 1; seconds -= 1) if (gapSeconds % seconds === 0) return seconds;
  return gapSeconds < longestTickSeconds ? gapSeconds : 1;
}

/** Runs one policy over a trace. The same options, trace and seed give the same result. */
export function runSpot(trace: SpotTrace, policyOf: SpotPolicyOf, options: SpotOptions): SpotResult {
  const tickSeconds = tickSecondsOf(trace.gapSeconds);
  const tickMs = tickSeconds * 1_000;
  // A whole number of ticks: a replica is ready at a tick.
  const coldStartMs = Math.max(1, Math.round(options.coldStartMs / tickMs)) * tickMs;
  const { target, onDemandPrice, requestMs = 10_000 } = options;
  /** In replica capacities. */
  const load = (options.load ?? 0.8) * target;
  const fleet = new SpotFleet(trace, { ...options, coldStartMs }, target);
  const policy = policyOf(options, trace.zones);
  const ticksPerStep = trace.gapSeconds / tickSeconds;
  const ticks = (trace.capacity[0]?.length ?? 0) * ticksPerStep;
  const controlTicks = Math.max(1, Math.round(usualControlMs / tickMs));
  const sums = { spot: 0, onDemand: 0, price: 0, enough: 0, missing: 0, overload: 0, lostInFlight: 0 };
  let readyBefore = 0;
  for (let tick = 0; tick < ticks; tick += 1) {
    fleet.now = tick * tickMs;
    const isScored = fleet.now >= coldStartMs;
    if (tick % ticksPerStep === 0) {
      const lost = fleet.preempt(tick / ticksPerStep, policy);
      if (isScored && readyBefore > 0) sums.lostInFlight += lost * Math.min(load / readyBefore, 1);
    }
    fleet.reportReady(policy);
    if (tick % controlTicks === 0) policy.step(fleet);
    readyBefore = fleet.countReady();
    sums.spot += fleet.spot.length;
    sums.onDemand += fleet.onDemand.length;
    sums.price += fleet.price();
    if (!isScored) continue;
    if (readyBefore >= target) sums.enough += 1;
    else sums.missing += target - readyBefore;
    sums.overload += Math.max(0, load - readyBefore);
  }
  const scored = ticks - coldStartMs / tickMs;
  const hours = (ticks * tickMs) / 3_600_000;
  // A replica capacity is one unit of concurrent work, which takes `requestMs`.
  const requests = (load * scored * tickMs) / requestMs;
  return {
    cost: sums.price / (target * onDemandPrice * ticks),
    spot: sums.spot / (target * ticks),
    onDemand: sums.onDemand / (target * ticks),
    available: sums.enough / scored,
    missing: sums.missing / (target * scored),
    failed: sums.overload / (load * scored) + sums.lostInFlight / requests,
    lostPerDay: (fleet.lost * 24) / hours,
    refusedPerDay: (fleet.refused * 24) / hours,
    changesPerHour: fleet.changes / hours,
    days: hours / 24,
  };
}
