/** Requests before this second are not scored: the replicas of the start are arbitrary, s. */
export const warmUpSeconds = 600;

/** Until this second the number of replicas stays, so that every window of a scaler is full, s. */
const holdSeconds = 300;

/** A request that would wait longer fails, s. */
const longestWaitSeconds = 60;

/** A request that waits longer for a replica is late, s. */
const lateAfterSeconds = 5;

/** Share of a replica's capacity that the start and the baselines use. */
export const usualUtilisation = 0.7;

/** A service under load: the arrivals of each second, and what its replicas can do. */
export interface ScaleTrace {
  readonly arrivals: readonly number[];
  /** Requests per second that a ready replica serves at most. */
  readonly capacityQps: number;
  /** Time from the launch of a replica until it serves, s. */
  readonly coldStartSeconds: number;
}

/** How long a replica works on a request; it scales the number of ongoing requests and nothing else, s. */
export const simulatedRequestSeconds = 10;

/** Requests in flight, from the arrivals of the last `seconds`, and those that wait. */
export function ongoingRequests({ second, backlog, ready, arrived }: ScaleFacts, { capacityQps }: ScaleTrace, seconds: number): number {
  return Math.min(arrived(second - seconds, second) / seconds, ready * capacityQps) * simulatedRequestSeconds + backlog;
}

/** What a scaler knows at a second. */
export interface ScaleFacts {
  readonly second: number;
  /** Requests that wait. */
  readonly backlog: number;
  readonly ready: number;
  /** What the scaler decided last. */
  readonly desired: number;
  /** Requests that arrived from second `from` (or the start) to before `to`. */
  readonly arrived: (from: number, to: number) => number;
}

/** A running autoscaler with its memory. */
export interface Scaler {
  /** Time between decisions, s. */
  readonly everySeconds: number;
  /** The number of replicas from now on. */
  decide(facts: ScaleFacts): number;
}

/** A named autoscaler. */
export interface ScalerKind {
  readonly name: string;
  /** `replicas`: the number at the start. */
  start(trace: ScaleTrace, replicas: number): Scaler;
}

/** The replicas of a simulated service. */
export interface Fleet {
  readonly ready: number;
  /** Ready replicas and those that start, of which those on demand. */
  readonly launched: number;
  readonly onDemand: number;
  /** Price of the launched replicas for a second, in the fleet's unit. */
  readonly price: number;
  /** Begins a second: replicas become ready, and ready ones may be lost. Returns how many were lost. */
  advance(second: number): number;
  /** A new decision of the scaler. */
  resize(desired: number, second: number): void;
}

/** What a run cost, and how its requests fared. Shares are of the requests after the warm-up, 0 to 1. */
export interface ScaleResult {
  /** Billed time of all replicas, cold starts included. */
  readonly replicaSeconds: number;
  readonly onDemandSeconds: number;
  /** Of all replicas, in the fleet's unit. */
  readonly price: number;
  readonly requests: number;
  /** Share of requests that waited more than 5 s. */
  readonly late: number;
  /** Share of requests that would have waited more than a minute, or ran on a replica when it was lost. */
  readonly failed: number;
  /** Share of the latter. */
  readonly cut: number;
  readonly meanWaitSeconds: number;
  readonly changesPerHour: number;
  readonly series: readonly ScalePoint[];
}

/** The state at one second of a run. */
export interface ScalePoint {
  readonly second: number;
  readonly arrivals: number;
  readonly backlog: number;
  readonly ready: number;
  readonly launched: number;
  readonly onDemand: number;
}

interface ScaleOptions {
  readonly initialReplicas?: number;
  /** The replicas, as many as initially. Otherwise they are all on demand, and always available. */
  readonly fleet?: Fleet;
  /** Record a point each so many seconds; none by default. */
  readonly pointEverySeconds?: number;
}

/** The number of replicas for the first five minutes of a trace at the usual utilisation. */
function replicasAtStart({ arrivals, capacityQps }: ScaleTrace): number {
  const first = arrivals.slice(0, holdSeconds);
  const mean = first.reduce((sum, count) => sum + count, 0) / Math.max(1, first.length);
  return Math.max(1, Math.ceil(mean / (usualUtilisation * capacityQps)));
}

/**
 * Replicas that are always available, without a market. A surplus one ends at once: the newest that starts first, then
 * ready ones.
 */
class SteadyFleet implements Fleet {
  ready: number;
  launched: number;
  readonly #coldStartSeconds: number;
  /** When each replica that starts will be ready, the oldest first. */
  #starting: number[] = [];

  constructor(replicas: number, coldStartSeconds: number) {
    this.ready = replicas;
    this.launched = replicas;
    this.#coldStartSeconds = coldStartSeconds;
  }

  get onDemand(): number {
    return this.launched;
  }

  get price(): number {
    return this.launched;
  }

  advance(second: number): number {
    while (this.#starting[0] !== undefined && this.#starting[0] <= second) {
      this.#starting = this.#starting.slice(1);
      this.ready++;
    }
    return 0;
  }

  resize(desired: number, second: number): void {
    const more = Math.max(0, desired - this.launched);
    this.#starting = [...this.#starting, ...Array.from({ length: more }, () => second + this.#coldStartSeconds)];
    const surplus = Math.max(0, this.launched - desired);
    this.ready -= Math.max(0, surplus - this.#starting.length);
    if (surplus > 0) this.#starting = this.#starting.slice(0, Math.max(0, this.#starting.length - surplus));
    this.launched = desired;
  }
}

/**
 * Runs a scaler over a trace, second by second. All requests share one queue, which ready replicas empty. Replicas are
 * billed from their launch.
 */
export function runScale(trace: ScaleTrace, kind: ScalerKind, options: ScaleOptions = {}): ScaleResult {
  const { arrivals, capacityQps, coldStartSeconds } = trace;
  const start = options.initialReplicas ?? replicasAtStart(trace);
  const fleet = options.fleet ?? new SteadyFleet(start, coldStartSeconds);
  const scaler = kind.start(trace, start);
  const sums = runningSums(arrivals);
  const arrived = (from: number, to: number): number => (sums[Math.max(0, to)] ?? 0) - (sums[Math.max(0, from)] ?? 0);
  const series: ScalePoint[] = [];
  let [desired, backlog] = [start, 0];
  const score = { replicaSeconds: 0, onDemandSeconds: 0, price: 0, requests: 0, late: 0, failed: 0, cut: 0, waited: 0, changes: 0 };
  for (const [second, count] of arrivals.entries()) {
    const isScored = second >= warmUpSeconds;
    const { ready } = fleet;
    const lost = fleet.advance(second);
    if (lost > 0 && isScored) {
      const rate = arrived(second - simulatedRequestSeconds, second) / simulatedRequestSeconds;
      score.cut += lost * Math.min(rate / Math.max(1, ready), capacityQps) * simulatedRequestSeconds;
    }
    if (second % scaler.everySeconds === 0 && second >= holdSeconds) {
      const before = desired;
      desired = scaler.decide({ second, backlog, ready: fleet.ready, desired, arrived });
      if (desired !== before) {
        score.changes++;
        fleet.resize(desired, second);
      }
    }
    const capacity = fleet.ready * capacityQps;
    const wait = capacity > 0 ? backlog / capacity : Number.POSITIVE_INFINITY;
    if (isScored) {
      score.replicaSeconds += fleet.launched;
      score.onDemandSeconds += fleet.onDemand;
      score.price += fleet.price;
      score.requests += count;
      score.waited += count * Math.min(wait, longestWaitSeconds);
      if (wait > lateAfterSeconds) score.late += count;
    }
    backlog = Math.max(0, backlog + count - capacity);
    const most = capacity * longestWaitSeconds;
    if (backlog > most) {
      if (isScored) score.failed += backlog - most;
      backlog = most;
    }
    if (options.pointEverySeconds !== undefined && second % options.pointEverySeconds === 0)
      series.push({ second, arrivals: count, backlog, ready: fleet.ready, launched: fleet.launched, onDemand: fleet.onDemand });
  }
  const requests = Math.max(1, score.requests);
  return {
    replicaSeconds: score.replicaSeconds,
    onDemandSeconds: score.onDemandSeconds,
    price: score.price,
    requests: score.requests,
    late: score.late / requests,
    failed: (score.failed + score.cut) / requests,
    cut: score.cut / requests,
    meanWaitSeconds: score.waited / requests,
    changesPerHour: score.changes / (arrivals.length / 3_600),
    series,
  };
}

/** Time between two numbers of the bound, s. */
export const boundStepSeconds = 10;

/** Lengths of the windows whose arrivals the bound must serve in time, in such steps. */
const boundWindows = [1, 2, 3, 6, 12, 18, 30, 60];

/**
 * The fewest replicas at each `boundStepSeconds` after the warm-up that make no request late, with hindsight: those that
 * serve the arrivals of every window that contains the time within the window and five seconds.
 */
export function leastReplicas({ arrivals, capacityQps }: ScaleTrace): readonly number[] {
  const length = Math.ceil(arrivals.length / boundStepSeconds);
  const sums = runningSums(
    Array.from({ length }, (_, index) =>
      arrivals.slice(index * boundStepSeconds, (index + 1) * boundStepSeconds).reduce((sum, count) => sum + count, 0),
    ),
  );
  const needed = new Float64Array(length);
  for (const window of boundWindows) {
    for (let from = 0; from < length; from++) {
      const total = (sums[Math.min(from + window, length)] ?? 0) - (sums[from] ?? 0);
      const rate = total / (window * boundStepSeconds + lateAfterSeconds) / capacityQps;
      for (let at = from; at < Math.min(from + window, length); at++) needed[at] = Math.max(needed[at] ?? 0, rate);
    }
  }
  return Array.from(needed, (value) => Math.max(1, Math.ceil(value - 1e-9))).slice(warmUpSeconds / boundStepSeconds);
}

/** Replica-seconds that no autoscaler undercuts without late requests. Every launch is billed for its cold start. */
export function leastReplicaSeconds(trace: ScaleTrace): number {
  const replicas = leastReplicas(trace);
  return replicas.reduce((sum, count, index) => {
    const before = replicas[index - 1] ?? count;
    return sum + count * boundStepSeconds + Math.max(0, count - before) * trace.coldStartSeconds;
  }, 0);
}

/** `sums[n]`: the sum of the first n values. */
export function runningSums(values: readonly number[]): Float64Array {
  const sums = new Float64Array(values.length + 1);
  for (const [index, value] of values.entries()) sums[index + 1] = (sums[index] ?? 0) + value;
  return sums;
}
