import type { LoadSignals } from './load-signals.ts';

/**
 * The forecast autoscaler. It expects a peak of the load within the time that a new replica takes to become ready, knows
 * from its own past errors how far such peaks deviate, and takes the number of replicas where one more costs more than
 * the late requests that it prevents. One step is one decision, `stepSeconds` after the last one.
 */

/** Time between two decisions, s; also the length of a slot of `LoadSignals.recent`. */
export const stepSeconds = 10;

/** SkyServe's users set a target at about this share of what a replica can serve. */
const targetUtilisation = 0.7;

/** A late request counts as much as the replicas cost that serve this many requests. */
const lateWeight = 6;

/** Waiting time that counts as late, unless the file gives one, s. */
const defaultTtfbSeconds = 5;

/** Windows whose arrivals must be served in time, in slots: a short burst may wait, a long one may not. */
const peakWindows = [1, 2, 3, 6, 12, 18, 30];

/** The last peaks that are kept, in steps: half an hour. */
const keptSteps = 180;

/** Peaks of the last five minutes and of the last half hour form the expectation, beside the mean of ten minutes. */
const peakSteps = [30, keptSteps];

/** Longest cold start that is planned for, in steps. A number is held for one and a half of it, which must be kept. */
const longestColdStartSteps = 120;

/** Shortest time for which a required number stays required, in steps: five minutes, as in Kubernetes' HPA. */
const shortestHoldSteps = 30;

/** Errors are logarithms of ratios, counted in bins. */
const errorBins = { count: 60, from: -0.5, width: 0.03 } as const;

/** Errors lose 1/e of their weight in three hours. */
const rememberedSteps = 1_080;

/**
 * Assumed before there are errors: a Laplace distribution with the weight of 200 steps. Its numbers are for a cold start
 * of three minutes; they grow with the square root of the time, as the distance of a random walk does.
 */
const assumedErrors = { weight: 200, around: 0.03, scale: 0.1, horizon: 19 } as const;

/** The part of a rise over the last minute that is expected to go on. */
const trendShare = 0.2;

/** The arrivals of this time, in slots, are the rate of the moment. */
const momentSlots = 2;

/** Queued requests are to be served within this time, s. */
const drainSeconds = 30;

/** State of the forecast between decisions. Numbers are rounded, because the state is stored each time. */
export interface ForecastMemory {
  /** The peaks of the last steps, requests per second, the latest last. */
  readonly peaks: readonly number[];
  /** What the last steps expected; their errors are not known yet. The latest last. */
  readonly expected: readonly number[];
  /** Weight of past errors in each bin. */
  readonly errors: readonly number[];
  /** Replicas that the last steps required. The latest last. */
  readonly required: readonly number[];
}

/** The part of a policy that the forecast uses. */
interface ForecastPolicy {
  readonly targetQps: number;
  readonly ttfbSeconds: number | undefined;
  readonly ongoingPerReplica: number | undefined;
  readonly maxReplicas: number;
}

/** One step: the new state. Its `required` has the replicas that are required now last. */
export function forecastStep(memory: ForecastMemory | undefined, policy: ForecastPolicy, signals: LoadSignals): ForecastMemory {
  const horizon = Math.min(longestColdStartSteps, Math.ceil(signals.coldStartSeconds / stepSeconds) + 1);
  const { peaks: before, expected: pending, errors: known, required } = memory ?? startedForecast(horizon);
  const peaks = keepLast([...before, round(peakOf(signals.recent, policy.ttfbSeconds ?? defaultTtfbSeconds))], keptSteps);
  const isJudged = pending.length > horizon;
  const errors = isJudged ? learned(known, pending.at(-horizon - 1) ?? 0, highest(peaks, horizon + 1)) : known;
  const expectation = round(expectationOf(peaks, signals.recent));
  const capacity = policy.targetQps / targetUtilisation;
  const replicas = Math.max(
    cheapestReplicas(expectation, errors, { capacity, most: policy.maxReplicas }),
    Math.ceil(momentaryRate(signals, policy) / capacity),
  );
  const hold = Math.max(shortestHoldSteps, Math.ceil(horizon * 1.5));
  return {
    peaks,
    expected: keepLast([...pending, expectation], horizon + 1),
    errors,
    required: keepLast([...required, replicas], hold + 1),
  };
}

/** Replicas that a step requires: the most of what was required while a replica starts and half that time again. */
export function requiredReplicas({ required }: ForecastMemory): number {
  return Math.max(0, ...required);
}

const keepLast = <Item>(items: readonly Item[], count: number): readonly Item[] => items.slice(-count);
const highest = (values: readonly number[], last: number): number => Math.max(0, ...values.slice(-last));
const round = (value: number): number => Number(value.toPrecision(4));
const sum = (values: readonly number[]): number => values.reduce((total, value) => total + value, 0);

function startedForecast(horizon: number): ForecastMemory {
  const growth = Math.sqrt(horizon / assumedErrors.horizon);
  const [around, scale] = [assumedErrors.around * growth, assumedErrors.scale * growth];
  const density = Array.from({ length: errorBins.count }, (_, bin) =>
    Math.exp(-Math.abs(errorBins.from + (bin + 0.5) * errorBins.width - around) / scale),
  );
  const errors = density.map((value) => round((value * assumedErrors.weight) / sum(density)));
  return { peaks: [], expected: [], errors, required: [] };
}

/** The capacity at which no request of the last five minutes would have waited too long, requests per second. */
function peakOf(recent: readonly number[], ttfbSeconds: number): number {
  const known = peakWindows.filter((slots) => slots <= recent.length);
  return Math.max(0, ...known.map((slots) => sum(recent.slice(0, slots)) / (slots * stepSeconds + ttfbSeconds)));
}

/** Geometric mean of the mean rate and the peaks: a spike raises it less than its height, and a lull lowers it less. */
function expectationOf(peaks: readonly number[], recent: readonly number[]): number {
  const mean = recent.length === 0 ? 0 : sum(recent) / (recent.length * stepSeconds);
  const factors = [mean, ...peakSteps.map((steps) => highest(peaks, steps))];
  return factors.reduce((product, factor) => product * factor, 1) ** (1 / factors.length);
}

/** Counts an error; older ones lose weight. Nothing was expected without requests, so there is no ratio. */
function learned(errors: readonly number[], expectation: number, peak: number): readonly number[] {
  if (expectation <= 0 || peak <= 0) return errors;
  const { count, from, width } = errorBins;
  const bin = Math.min(count - 1, Math.max(0, Math.floor((Math.log(peak / expectation) - from) / width)));
  return errors.map((weight, index) => round(weight * (1 - 1 / rememberedSteps) + (index === bin ? 1 : 0)));
}

/** The number of replicas with the least cost: what they can serve, and `lateWeight` times the requests at risk. */
function cheapestReplicas(
  expectation: number,
  errors: readonly number[],
  { capacity, most }: { readonly capacity: number; readonly most: number },
): number {
  if (expectation <= 0) return 0;
  const { count, from, width } = errorBins;
  const all = sum(errors);
  const highestPeak = expectation * Math.exp(from + count * width);
  let [best, bestCost, above, bin] = [1, Number.POSITIVE_INFINITY, 0, count - 1];
  for (let replicas = Math.max(1, Math.min(most, Math.ceil(highestPeak / capacity))); replicas >= 1; replicas--) {
    const edge = (Math.log((replicas * capacity) / expectation) - from) / width;
    while (bin >= 0 && bin >= edge) above += errors[bin--] ?? 0;
    const partly = bin >= 0 && bin + 1 > edge ? (errors[bin] ?? 0) * (bin + 1 - edge) : 0;
    const cost = replicas * capacity + (lateWeight * expectation * (above + partly)) / all;
    if (cost < bestCost) [best, bestCost] = [replicas, cost];
    if (edge < 0) break;
  }
  return best;
}

/** The rate of the last moments with its trend, and what it takes to serve the requests that wait. */
function momentaryRate({ recent, queued, inFlight, readyReplicas, engines }: LoadSignals, { ongoingPerReplica }: ForecastPolicy): number {
  const rate = sum(recent.slice(0, momentSlots)) / (momentSlots * stepSeconds);
  const earlier = recent.slice(momentSlots, momentSlots + 6);
  const trend = earlier.length === 0 ? 0 : Math.max(0, rate - sum(earlier) / (earlier.length * stepSeconds));
  const usual = ongoingPerReplica === undefined ? inFlight : (ongoingPerReplica / targetUtilisation) * readyReplicas;
  return rate + trendShare * trend + (queued + Math.max(0, inFlight - usual, engines?.waiting ?? 0)) / drainSeconds;
}
