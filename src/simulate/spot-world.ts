import type { Random } from '../shared/random.ts';

/** Recorded spot capacity: how many replicas each zone can hold, in steps of equal length. */
export interface SpotTrace {
  readonly name: string;
  readonly gapSeconds: number;
  readonly zones: readonly string[];
  /** Per zone, per step. */
  readonly capacity: readonly (readonly number[])[];
}

/** What a simulated service is like. All of it is the same for each compared policy. */
export interface SpotOptions {
  /** Ready replicas that the service needs at any time. */
  readonly target: number;
  /** Price of an on-demand replica; a spot replica costs 1. */
  readonly onDemandPrice: number;
  /** From a launch until the replica is ready. */
  readonly coldStartMs: number;
  readonly random: Random;
  /** Between two decisions of the policy. */
  readonly controlMs?: number;
  /** Constant load, as a share of the target's capacity. */
  readonly load?: number;
  /** Mean time of a request: what a lost replica was working on. */
  readonly requestMs?: number;
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
  readonly zones: readonly string[];
  readonly options: SpotOptions;
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
interface SpotPolicy {
  step(world: SpotWorld): void;
  onLoss?(zone: number, world: SpotWorld): void;
  onReady?(zone: number, world: SpotWorld): void;
}

/** Creates the policy of one run. */
export type SpotPolicyOf = (options: SpotOptions, zones: readonly string[]) => SpotPolicy;

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

/** The region of a zone: `us-east-1a_v100_1` is in `us-east-1`, `us-central1-b_a100` in `us-central1`. */
export function regionOf(zone: string): string {
  const name = zone.split('_', 1)[0] ?? zone;
  return name.slice(0, -1).replace(/-$/, '');
}

/** The longest whole number of seconds that divides the trace's step and is at most 16; or that step. */
function tickSecondsOf(gapSeconds: number): number {
  for (let seconds = longestTickSeconds; seconds > 1; seconds -= 1) if (gapSeconds % seconds === 0) return seconds;
  return gapSeconds < longestTickSeconds ? gapSeconds : 1;
}

/** Runs one policy over a trace. The same options, trace and seed give the same result. */
export function runSpot(trace: SpotTrace, policyOf: SpotPolicyOf, options: SpotOptions): SpotResult {
  const tickSeconds = tickSecondsOf(trace.gapSeconds);
  const world = new TickWorld(trace, options, tickSeconds * 1_000);
  const policy = policyOf(options, trace.zones);
  const ticksPerStep = trace.gapSeconds / tickSeconds;
  const ticks = (trace.capacity[0]?.length ?? 0) * ticksPerStep;
  const controlTicks = Math.max(1, Math.round((options.controlMs ?? 30_000) / world.tickMs));
  for (let tick = 0; tick < ticks; tick += 1) {
    world.now = tick * world.tickMs;
    if (tick % ticksPerStep === 0) world.preempt(tick / ticksPerStep, policy);
    world.reportReady(policy);
    if (tick % controlTicks === 0) policy.step(world);
    world.score();
  }
  return world.result(ticks);
}

class TickWorld implements SpotWorld {
  now = 0;
  readonly zones: readonly string[];
  readonly options: SpotOptions;
  readonly spot: SimulatedSpotReplica[] = [];
  readonly onDemand: SimulatedReplica[] = [];
  readonly tickMs: number;
  readonly #trace: SpotTrace;
  /** A whole number of ticks: a replica is ready at a tick. */
  readonly #coldStartMs: number;
  /** In replica capacities. */
  readonly #load: number;
  readonly #used: number[];
  #room: number[];
  #readyBefore = 0;
  #spotTicks = 0;
  #onDemandTicks = 0;
  #enoughTicks = 0;
  #missingTicks = 0;
  #overloadTicks = 0;
  #lostInFlight = 0;
  #lost = 0;
  #refused = 0;
  #changes = 0;

  constructor(trace: SpotTrace, options: SpotOptions, tickMs: number) {
    this.#trace = trace;
    this.zones = trace.zones;
    this.options = options;
    this.tickMs = tickMs;
    this.#coldStartMs = Math.max(1, Math.round(options.coldStartMs / tickMs)) * tickMs;
    this.#load = (options.load ?? 0.8) * options.target;
    this.#used = trace.zones.map(() => 0);
    this.#room = trace.zones.map(() => 0);
  }

  inZone(zone: number): number {
    return this.#used[zone] ?? 0;
  }

  launchSpot(zone: number): boolean {
    if (this.inZone(zone) >= (this.#room[zone] ?? 0)) {
      this.#refused += 1;
      return false;
    }
    this.spot.push({ zone, launchedAt: this.now, readyAt: this.now + this.#coldStartMs });
    this.#used[zone] = this.inZone(zone) + 1;
    this.#changes += 1;
    return true;
  }

  endSpot(replica: SimulatedSpotReplica): void {
    const index = this.spot.indexOf(replica);
    if (index < 0) return;
    this.spot.splice(index, 1);
    this.#used[replica.zone] = this.inZone(replica.zone) - 1;
    this.#changes += 1;
  }

  setOnDemand(count: number): void {
    const before = this.onDemand.length;
    for (let more = count - before; more > 0; more -= 1)
      this.onDemand.push({ launchedAt: this.now, readyAt: this.now + this.#coldStartMs });
    // The newest are last.
    if (count < before) this.onDemand.length = Math.max(0, count);
    this.#changes += Math.abs(this.onDemand.length - before);
  }

  /** A zone whose capacity falls below our replicas takes random ones of them without a notice. */
  preempt(step: number, policy: SpotPolicy): void {
    this.#room = this.#trace.capacity.map((zone) => zone[step] ?? 0);
    for (const [zone, room] of this.#room.entries()) {
      while (this.inZone(zone) > room) {
        const ours = this.spot.filter((replica) => replica.zone === zone);
        const victim = ours[Math.floor(this.options.random() * ours.length)];
        if (victim === undefined) break;
        this.endSpot(victim);
        this.#lost += 1;
        if (victim.readyAt <= this.now && this.#isScored() && this.#readyBefore > 0)
          this.#lostInFlight += Math.min(this.#load / this.#readyBefore, 1);
        policy.onLoss?.(zone, this);
      }
    }
  }

  reportReady(policy: SpotPolicy): void {
    for (const { zone, readyAt } of this.spot) if (readyAt === this.now) policy.onReady?.(zone, this);
  }

  #isScored(): boolean {
    return this.now >= this.#coldStartMs;
  }

  score(): void {
    let ready = 0;
    for (const { readyAt } of this.spot) if (readyAt <= this.now) ready += 1;
    for (const { readyAt } of this.onDemand) if (readyAt <= this.now) ready += 1;
    this.#readyBefore = ready;
    this.#spotTicks += this.spot.length;
    this.#onDemandTicks += this.onDemand.length;
    if (!this.#isScored()) return;
    if (ready >= this.options.target) this.#enoughTicks += 1;
    else this.#missingTicks += this.options.target - ready;
    this.#overloadTicks += Math.max(0, this.#load - ready);
  }

  result(ticks: number): SpotResult {
    const { target, onDemandPrice, requestMs = 10_000 } = this.options;
    const scored = ticks - this.#coldStartMs / this.tickMs;
    const hours = (ticks * this.tickMs) / 3_600_000;
    // A replica capacity is one unit of concurrent work, which takes `requestMs`.
    const requests = (this.#load * scored * this.tickMs) / requestMs;
    return {
      cost: (this.#spotTicks + onDemandPrice * this.#onDemandTicks) / (target * onDemandPrice * ticks),
      spot: this.#spotTicks / (target * ticks),
      onDemand: this.#onDemandTicks / (target * ticks),
      available: this.#enoughTicks / scored,
      missing: this.#missingTicks / (target * scored),
      failed: this.#overloadTicks / (this.#load * scored) + this.#lostInFlight / requests,
      lostPerDay: (this.#lost * 24) / hours,
      refusedPerDay: (this.#refused * 24) / hours,
      changesPerHour: this.#changes / hours,
      days: hours / 24,
    };
  }
}
