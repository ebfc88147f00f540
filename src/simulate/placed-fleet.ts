import type { Fleet } from './scale-world.ts';
import { SpotFleet, usualControlMs, type FleetOptions, type SpotPolicy, type SpotPolicyOf, type SpotTrace } from './spot-fleet.ts';

/** How a spot policy places the replicas of a run. */
interface PlacedFleetOptions extends FleetOptions {
  readonly trace: SpotTrace;
  /** The second of the trace at which the fleet starts. */
  readonly fromSecond: number;
  readonly policyOf: SpotPolicyOf;
}

/**
 * Replicas that a spot policy places over recorded capacity, as many as an autoscaler desires. The policy decides every
 * 30 s and after each change of the desired number. It starts one cold start before the first second, so that the
 * service already runs then.
 */
export class PlacedFleet implements Fleet {
  ready = 0;
  readonly #fleet: SpotFleet;
  readonly #policy: SpotPolicy;
  readonly #options: PlacedFleetOptions;
  readonly #leadSeconds: number;

  constructor(replicas: number, options: PlacedFleetOptions) {
    const { trace, policyOf, coldStartMs } = options;
    this.#options = options;
    this.#leadSeconds = leadSecondsOf(coldStartMs);
    this.#fleet = new SpotFleet(trace, options, replicas);
    this.#policy = policyOf(options, trace.zones);
    for (let second = -this.#leadSeconds; second < 0; second += 1) this.advance(second);
  }

  get launched(): number {
    return this.#fleet.spot.length + this.#fleet.onDemand.length;
  }

  get onDemand(): number {
    return this.#fleet.onDemand.length;
  }

  get price(): number {
    return this.#fleet.price();
  }

  /** Lost replicas, also those that started. */
  get lost(): number {
    return this.#fleet.lost;
  }

  /** Launches, ends and losses. */
  get changes(): number {
    return this.#fleet.changes;
  }

  advance(second: number): number {
    const { trace, fromSecond } = this.#options;
    const at = second + this.#leadSeconds;
    const traceSecond = fromSecond + at;
    this.#fleet.now = at * 1_000;
    const isStep = at === 0 || traceSecond % trace.gapSeconds === 0;
    const lost = isStep ? this.#fleet.preempt(Math.floor(traceSecond / trace.gapSeconds), this.#policy) : 0;
    this.#fleet.reportReady(this.#policy);
    if (this.#fleet.now % usualControlMs === 0) this.#policy.step(this.#fleet);
    this.ready = this.#fleet.countReady();
    return lost;
  }

  resize(desired: number): void {
    this.#fleet.target = desired;
    this.#policy.step(this.#fleet);
    this.ready = this.#fleet.countReady();
  }
}

/** Seconds of a spot trace before the first request: the first replicas start. */
export function leadSecondsOf(coldStartMs: number): number {
  return Math.ceil(coldStartMs / 1_000);
}
