import type { Random } from '../shared/random.ts';

/** Recorded spot capacity: how many replicas each zone can hold, in steps of equal length. */
export interface SpotTrace {
  readonly name: string;
  readonly gapSeconds: number;
  readonly zones: readonly string[];
  /** Per zone, per step. */
  readonly capacity: readonly (readonly number[])[];
  /** Mean recorded price of a spot replica per zone, US dollars per hour; undefined for zones without one. */
  readonly spotUsd?: readonly (number | undefined)[];
}

/** What the replicas of a simulated service are like. All of it is the same for each compared policy. */
export interface FleetOptions {
  /** Price of an on-demand replica. */
  readonly onDemandPrice: number;
  /** Price of a spot replica in each zone, in the same unit; 1 when absent. */
  readonly spotPrices?: readonly number[] | undefined;
  /** From a launch until the replica is ready. */
  readonly coldStartMs: number;
  readonly random: Random;
}

/** A replica in the simulated world. */
interface SimulatedReplica {
  readonly launchedAt: number;
  readonly readyAt: number;
}

/** A spot replica in the simulated world; `zone` is an index. */
export interface SimulatedSpotReplica extends SimulatedReplica {
  readonly zone: number;
}

/** What a policy sees and can do. Times are ms since the trace's start. */
export interface SpotWorld {
  readonly now: number;
  /** Ready replicas that the service needs now. */
  readonly target: number;
  readonly spot: readonly SimulatedSpotReplica[];
  readonly onDemand: readonly SimulatedReplica[];
  /** Our spot replicas in a zone. */
  inZone(zone: number): number;
  /** False when the zone refuses: it is full. */
  launchSpot(zone: number): boolean;
  endSpot(replica: SimulatedSpotReplica): void;
  /** Launches or ends on-demand replicas. The newest ends first. */
  setOnDemand(count: number): void;
}

/** One run's policy. It may keep state, so every run needs a new one. */
export interface SpotPolicy {
  step(world: SpotWorld): void;
  onLoss?(zone: number, world: SpotWorld): void;
  onReady?(zone: number, world: SpotWorld): void;
}

/** Creates the policy of one run. */
export type SpotPolicyOf = (options: FleetOptions, zones: readonly string[]) => SpotPolicy;

/** Time between two decisions of a policy, ms. */
export const usualControlMs = 30_000;

/** The region of a zone: `us-east-1a_v100_1` is in `us-east-1`, `us-central1-b_a100` in `us-central1`. */
export function regionOf(zone: string): string {
  return zoneNameOf(zone).slice(0, -1).replace(/-$/, '');
}

/** The provider's name of a zone: a trace may have the kind of machine behind it. */
export function zoneNameOf(zone: string): string {
  return zone.split('_', 1)[0] ?? zone;
}

/** The spot and on-demand replicas of a service over recorded capacity. Its owner moves `now` and `target`. */
export class SpotFleet implements SpotWorld {
  now = 0;
  target: number;
  readonly spot: SimulatedSpotReplica[] = [];
  readonly onDemand: SimulatedReplica[] = [];
  lost = 0;
  refused = 0;
  /** Launches and ends by the policy, and losses. */
  changes = 0;
  readonly #trace: SpotTrace;
  readonly #coldStartMs: number;
  readonly #options: FleetOptions;
  readonly #used: number[];
  #room: number[];

  constructor(trace: SpotTrace, options: FleetOptions, target: number) {
    this.target = target;
    this.#trace = trace;
    this.#coldStartMs = options.coldStartMs;
    this.#options = options;
    this.#used = trace.zones.map(() => 0);
    this.#room = trace.zones.map(() => 0);
  }

  inZone(zone: number): number {
    return this.#used[zone] ?? 0;
  }

  launchSpot(zone: number): boolean {
    if (this.inZone(zone) >= (this.#room[zone] ?? 0)) {
      this.refused += 1;
      return false;
    }
    this.spot.push({ zone, launchedAt: this.now, readyAt: this.now + this.#coldStartMs });
    this.#used[zone] = this.inZone(zone) + 1;
    this.changes += 1;
    return true;
  }

  endSpot(replica: SimulatedSpotReplica): void {
    const index = this.spot.indexOf(replica);
    if (index < 0) return;
    this.spot.splice(index, 1);
    this.#used[replica.zone] = this.inZone(replica.zone) - 1;
    this.changes += 1;
  }

  setOnDemand(count: number): void {
    const before = this.onDemand.length;
    for (let more = count - before; more > 0; more -= 1)
      this.onDemand.push({ launchedAt: this.now, readyAt: this.now + this.#coldStartMs });
    // The newest are last.
    if (count < before) this.onDemand.length = Math.max(0, count);
    this.changes += Math.abs(this.onDemand.length - before);
  }

  /**
   * Begins a step of the trace. A zone whose capacity falls below our replicas takes random ones of them without a
   * notice. Returns how many ready ones it took.
   */
  preempt(step: number, policy: SpotPolicy): number {
    let ready = 0;
    this.#room = this.#trace.capacity.map((zone) => zone[step] ?? 0);
    for (const [zone, room] of this.#room.entries()) {
      while (this.inZone(zone) > room) {
        const ours = this.spot.filter((replica) => replica.zone === zone);
        const victim = ours[Math.floor(this.#options.random() * ours.length)];
        if (victim === undefined) break;
        this.endSpot(victim);
        this.lost += 1;
        if (victim.readyAt <= this.now) ready += 1;
        policy.onLoss?.(zone, this);
      }
    }
    return ready;
  }

  reportReady(policy: SpotPolicy): void {
    for (const { zone, readyAt } of this.spot) if (readyAt === this.now) policy.onReady?.(zone, this);
  }

  countReady(): number {
    let ready = 0;
    for (const { readyAt } of this.spot) if (readyAt <= this.now) ready += 1;
    for (const { readyAt } of this.onDemand) if (readyAt <= this.now) ready += 1;
    return ready;
  }

  /** Price of all present replicas together. */
  price(): number {
    const { spotPrices, onDemandPrice } = this.#options;
    let sum = this.onDemand.length * onDemandPrice;
    for (const { zone } of this.spot) sum += spotPrices?.[zone] ?? 1;
    return sum;
  }
}
