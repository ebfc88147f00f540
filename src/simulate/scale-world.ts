/** Requests before this second are not scored: the replicas of the start are arbitrary, s. */
const warmUpSeconds = 600;

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
  /** Ready replicas and those that start. */
  readonly launched: number;
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

/** What a run cost, and how its requests fared. Shares are of the requests after the warm-up, 0 to 1. */
export interface ScaleResult {
  /** Billed time of all replicas, cold starts included. */
  readonly replicaSeconds: number;
  readonly requests: number;
  /** Share of requests that waited more than 5 s. */
  readonly late: number;
  /** Share of requests that would have waited more than a minute. */
  readonly failed: number;
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
}

interface ScaleOptions {
  readonly initialReplicas?: number;
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
 * Runs a scaler over a trace, second by second. All requests share one queue, which ready replicas empty. Replicas are
 * billed from their launch; a removed one ends at once, the newest that starts first.
 */
export function runScale(trace: ScaleTrace, kind: ScalerKind, options: ScaleOptions = {}): ScaleResult {
  const { arrivals, capacityQps, coldStartSeconds } = trace;
  const start = options.initialReplicas ?? replicasAtStart(trace);
  const scaler = kind.start(trace, start);
  const sums = runningSums(arrivals);
  const arrived = (from: number, to: number): number => (sums[Math.max(0, to)] ?? 0) - (sums[Math.max(0, from)] ?? 0);
  const series: ScalePoint[] = [];
  /** When each replica that starts will be ready, the oldest first. */
  let starting: number[] = [];
  let [ready, launched, backlog] = [start, start, 0];
  const score = { replicaSeconds: 0, requests: 0, late: 0, failed: 0, waited: 0, changes: 0 };
  for (const [second, count] of arrivals.entries()) {
    while (starting[0] !== undefined && starting[0] <= second) {
      starting = starting.slice(1);
      ready++;
    }
    if (second % scaler.everySeconds === 0 && second >= holdSeconds) {
      const desired = scaler.decide({ second, backlog, ready, launched, arrived });
      if (desired !== launched) score.changes++;
      if (desired > launched) starting = [...starting, ...Array.from({ length: desired - launched }, () => second + coldStartSeconds)];
      const surplus = Math.max(0, launched - desired);
      ready -= Math.max(0, surplus - starting.length);
      if (surplus > 0) starting = starting.slice(0, Math.max(0, starting.length - surplus));
      launched = desired;
    }
    const capacity = ready * capacityQps;
    const wait = capacity > 0 ? backlog / capacity : Number.POSITIVE_INFINITY;
    const isScored = second >= warmUpSeconds;
    if (isScored) {
      score.replicaSeconds += launched;
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
      series.push({ second, arrivals: count, backlog, ready, launched });
  }
  const requests = Math.max(1, score.requests);
  return {
    replicaSeconds: score.replicaSeconds,
    requests: score.requests,
    late: score.late / requests,
    failed: score.failed / requests,
    meanWaitSeconds: score.waited / requests,
    changesPerHour: score.changes / (arrivals.length / 3_600),
    series,
  };
}

/** Grid of the bound, s. */
const gridSeconds = 10;

/** Lengths of the windows whose arrivals the bound must serve in time, in steps of its grid. */
const boundWindows = [1, 2, 3, 6, 12, 18, 30, 60];

/**
 * Replica-seconds that no autoscaler undercuts without late requests, with hindsight: at each time the fewest replicas
 * that serve the arrivals of every window that contains it within the window and five seconds. Every launch is billed
 * for its cold start.
 */
export function leastReplicaSeconds({ arrivals, capacityQps, coldStartSeconds }: ScaleTrace): number {
  const length = Math.ceil(arrivals.length / gridSeconds);
  const sums = runningSums(
    Array.from({ length }, (_, index) =>
      arrivals.slice(index * gridSeconds, (index + 1) * gridSeconds).reduce((sum, count) => sum + count, 0),
    ),
  );
  const needed = new Float64Array(length);
  for (const window of boundWindows) {
    for (let from = 0; from < length; from++) {
      const total = (sums[Math.min(from + window, length)] ?? 0) - (sums[from] ?? 0);
      const rate = total / (window * gridSeconds + lateAfterSeconds) / capacityQps;
      for (let at = from; at < Math.min(from + window, length); at++) needed[at] = Math.max(needed[at] ?? 0, rate);
    }
  }
  const replicas = Array.from(needed, (value) => Math.max(1, Math.ceil(value - 1e-9))).slice(warmUpSeconds / gridSeconds);
  return replicas.reduce((sum, count, index) => {
    const before = replicas[index - 1] ?? count;
    return sum + count * gridSeconds + Math.max(0, count - before) * coldStartSeconds;
  }, 0);
}

/** `sums[n]`: the sum of the first n values. */
export function runningSums(values: readonly number[]): Float64Array {
  const sums = new Float64Array(values.length + 1);
  for (const [index, value] of values.entries()) sums[index + 1] = (sums[index] ?? 0) + value;
  return sums;
}
