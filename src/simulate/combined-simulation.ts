import { seededRandom } from '../shared/random.ts';
import { PlacedFleet, leadSecondsOf } from './placed-fleet.ts';
import { fileScaler, requestPolicies, type RequestPolicy } from './request-policies.ts';
import { availability, filePolicy, pointSeconds, startReplicas, type RequestQuestion } from './request-simulation.ts';
import {
  boundStepSeconds,
  leastReplicas,
  leastReplicaSeconds,
  runScale,
  warmUpSeconds,
  type ScalePoint,
  type ScaleResult,
  type ScaleTrace,
} from './scale-world.ts';
import { cheapestSpot, leastRoom } from './spot-bound.ts';
import type { SpotTrace } from './spot-fleet.ts';
import { placerOfFile, spotPolicies, type SpotChoice } from './spot-policies.ts';
import { seeds, type SpotQuestion } from './spot-simulation.ts';

/** An autoscaler and a placer of one service. */
export interface PolicyPair {
  /** `file`: the one of the file. */
  readonly autoscaler: keyof typeof requestPolicies | typeof filePolicy;
  readonly placer: keyof typeof spotPolicies;
}

/** What a simulation over requests and spot capacity together compares. */
export interface CombinedQuestion {
  /** Of the requests: `compared` does not count. */
  readonly requests: RequestQuestion;
  readonly spot: Pick<SpotQuestion, 'trace' | 'spotPrices' | 'spare'>;
  /** Of the file. It has the replicas that the file keeps on demand. */
  readonly placer: 'hedge' | 'dynamic_fallback';
  readonly compared: readonly PolicyPair[];
}

/** How one pair did. Shares are from 0 to 1. */
export interface CombinedScore extends PolicyPairNames {
  /** Both names, such as `forecast+hedge`. */
  readonly policy: string;
  readonly kind: RequestPolicy['kind'] | 'bound';
  readonly summary: string;
  /** Money, relative to the fewest replicas that make no request late, all on demand. */
  readonly cost: number;
  /** Replica-hours on demand that cost as much. */
  readonly paidHours: number;
  /** Share of the time in which a request waits at most 5 s. */
  readonly available: number;
  /** Share of requests beyond the queue, or cut. */
  readonly failed: number;
  /** Share of requests that ran on a replica when it was lost. */
  readonly cut: number;
  readonly late: number;
  readonly meanWaitSeconds: number;
  readonly replicaHours: number;
  readonly onDemandHours: number;
  readonly lostPerDay: number;
  /** Launches, ends and losses. */
  readonly changesPerHour: number;
}

interface PolicyPairNames {
  readonly autoscaler: string | null;
  readonly placer: string | null;
}

/** The scores of all pairs, and the courses of their first runs for charts. */
export interface CombinedAnswer {
  /** The file's pair first, the bound last. */
  readonly scores: readonly CombinedScore[];
  readonly courses: readonly { readonly policy: string; readonly points: readonly ScalePoint[] }[];
}

/** The requests of a run: as many seconds as the spot trace has after the start of the first replicas. */
export function combinedSeconds({ requests, spot }: Pick<CombinedQuestion, 'requests' | 'spot'>): number {
  return Math.min(requests.trace.arrivals.length, secondsOf(spot.trace) - leadOf(requests));
}

/**
 * Runs each pair over the same requests and the same capacity: the autoscaler decides the number of replicas from the
 * load and the ready replicas, the placer where they run, and the zones take them. Three runs start at the beginning, in
 * the middle and as late as possible in the spot trace.
 */
export function simulateCombined(question: CombinedQuestion): CombinedAnswer {
  const { requests, compared } = question;
  const trace: ScaleTrace = { ...requests.trace, arrivals: requests.trace.arrivals.slice(0, combinedSeconds(question)) };
  const wholeSeconds = leastReplicaSeconds(trace);
  const runs = compared.map((pair) => {
    const { autoscaler, placer } = choicesOf(pair, question);
    const results = startsOf(question, trace).map((fromSecond, run) => runOnce(question, pair, { trace, fromSecond, run }));
    const mean = (value: (one: (typeof results)[number]) => number): number =>
      results.reduce((sum, one) => sum + value(one), 0) / results.length;
    const policy = `${pair.autoscaler}+${pair.placer}`;
    const score: CombinedScore = {
      policy,
      ...pair,
      kind: autoscaler.kind === 'own' && placer.kind === 'own' ? 'own' : 'baseline',
      summary: `${autoscaler.summary}; ${placer.summary}`,
      cost: mean(({ price }) => price) / wholeSeconds,
      paidHours: mean(({ price }) => price) / 3_600,
      available: mean(({ series }) => availability(series, trace.capacityQps)),
      failed: mean(({ failed }) => failed),
      cut: mean(({ cut }) => cut),
      late: mean(({ late }) => late),
      meanWaitSeconds: mean(({ meanWaitSeconds }) => meanWaitSeconds),
      replicaHours: mean(({ replicaSeconds }) => replicaSeconds) / 3_600,
      onDemandHours: mean(({ onDemandSeconds }) => onDemandSeconds) / 3_600,
      lostPerDay: mean(({ lostPerDay }) => lostPerDay),
      changesPerHour: mean(({ changesPerHour }) => changesPerHour),
    };
    return { score, course: { policy, points: results[0]?.series ?? [] } };
  });
  return { scores: [...runs.map(({ score }) => score), boundOf(question, trace, wholeSeconds)], courses: runs.map(({ course }) => course) };
}

interface RunFacts {
  readonly trace: ScaleTrace;
  /** The second of the spot trace at which the first replicas start. */
  readonly fromSecond: number;
  /** Number of the run. */
  readonly run: number;
}

function runOnce(
  question: CombinedQuestion,
  pair: PolicyPair,
  { trace, fromSecond, run }: RunFacts,
): ScaleResult & { readonly lostPerDay: number } {
  const { requests, spot } = question;
  const { autoscaler, placer } = choicesOf(pair, question);
  const seed = seeds[run] ?? 0;
  const start = startReplicas(trace, requests.policy);
  const fleet = new PlacedFleet(start, {
    trace: spot.trace,
    fromSecond,
    policyOf: placer.policy(seed, spot.spare),
    onDemandPrice: 1,
    spotPrices: spot.spotPrices,
    coldStartMs: trace.coldStartSeconds * 1_000,
    random: seededRandom(seed),
  });
  const setting = { capacityQps: trace.capacityQps, startedAt: requests.startedAt };
  const result = runScale(trace, autoscaler.scaler(requests.policy, setting), {
    initialReplicas: start,
    fleet,
    pointEverySeconds: pointSeconds,
  });
  const hours = trace.arrivals.length / 3_600;
  return { ...result, lostPerDay: (fleet.lost * 24) / hours, changesPerHour: fleet.changes / hours };
}

function choicesOf(
  pair: PolicyPair,
  { requests, placer }: CombinedQuestion,
): { readonly autoscaler: RequestPolicy; readonly placer: SpotChoice } {
  const choice: SpotChoice = spotPolicies[pair.placer];
  return {
    autoscaler: pair.autoscaler === filePolicy ? fileScaler(requests.policy) : requestPolicies[pair.autoscaler],
    placer: pair.placer === placer ? { ...choice, policy: placerOfFile(placer, requests.policy) } : choice,
  };
}

/** Where in the spot trace the runs start, s. */
function startsOf({ requests, spot }: CombinedQuestion, { arrivals }: ScaleTrace): readonly number[] {
  const spare = secondsOf(spot.trace) - leadOf(requests) - arrivals.length;
  return seeds.map((_, run) => Math.floor((spare * run) / Math.max(1, seeds.length - 1)));
}

/** The fewest replicas that make no request late, in the cheapest zones that had room for their whole cold start. */
function boundOf(question: CombinedQuestion, trace: ScaleTrace, wholeSeconds: number): CombinedScore {
  const { spot } = question;
  const replicas = leastReplicas(trace);
  const cheapest = Math.min(1, ...spot.spotPrices);
  const bounds = startsOf(question, trace).map((fromSecond) => {
    const sum = { price: 0, spot: 0 };
    for (const [index, count] of replicas.entries()) {
      const at = fromSecond + leadOf(question.requests) + warmUpSeconds + index * boundStepSeconds;
      const filled = cheapestSpot(roomsAt(spot.trace, at, trace.coldStartSeconds), spot.spotPrices, count);
      const started = Math.max(0, count - (replicas[index - 1] ?? count));
      sum.spot += filled.spot * boundStepSeconds;
      sum.price += (filled.price + count - filled.spot) * boundStepSeconds + started * trace.coldStartSeconds * cheapest;
    }
    return sum;
  });
  const mean = (value: (one: (typeof bounds)[number]) => number): number =>
    bounds.reduce((sum, one) => sum + value(one), 0) / bounds.length;
  const price = mean((one) => one.price);
  return {
    policy: 'bound',
    autoscaler: null,
    placer: null,
    kind: 'bound',
    summary: 'the fewest replicas that make no request late, on the cheapest spot with room, with hindsight',
    cost: price / wholeSeconds,
    paidHours: price / 3_600,
    available: 1,
    failed: 0,
    cut: 0,
    late: 0,
    meanWaitSeconds: 0,
    replicaHours: wholeSeconds / 3_600,
    onDemandHours: Math.max(0, wholeSeconds - mean((one) => one.spot)) / 3_600,
    lostPerDay: 0,
    changesPerHour: 0,
  };
}

function roomsAt({ capacity, gapSeconds }: SpotTrace, second: number, coldStartSeconds: number): readonly number[] {
  return capacity.map((zone) => leastRoom(zone, Math.floor((second - coldStartSeconds) / gapSeconds), Math.floor(second / gapSeconds)));
}

const secondsOf = ({ capacity, gapSeconds }: SpotTrace): number => (capacity[0]?.length ?? 0) * gapSeconds;
const leadOf = ({ trace }: RequestQuestion): number => leadSecondsOf(trace.coldStartSeconds * 1_000);
