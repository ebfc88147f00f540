import { spotPlacerOf } from '../../domain/spot/markets.ts';
import type { ReplicaPolicy, Task } from '../../domain/task.ts';
import { SvcError } from '../../shared/errors.ts';
import { combinedSeconds, simulateCombined, type CombinedAnswer, type CombinedQuestion } from '../../simulate/combined-simulation.ts';
import type { Finished } from '../../simulate/report/report.ts';
import { weakestTarget } from '../../simulate/request-policies.ts';
import {
  limitedShare,
  simulateRequests,
  unscoredSeconds,
  type RequestAnswer,
  type RequestQuestion,
} from '../../simulate/request-simulation.ts';
import { simulatedRequestSeconds, usualUtilisation } from '../../simulate/scale-world.ts';
import type { SpotTrace } from '../../simulate/spot-fleet.ts';
import { simulateSpot, type SpotAnswer, type SpotQuestion } from '../../simulate/spot-simulation.ts';
import type { RequestTrace } from '../../simulate/traces/request-trace.ts';
import { formatDuration } from '../listing/format-values.ts';
import type { SpotPrices } from './spot-prices.ts';

/** `max_replicas` is worth a sentence when it makes requests late for longer than this share of the time. */
const noticedShare = 0.01;

/** Settings of a simulation over requests. */
export interface RequestSettings {
  readonly policy: ReplicaPolicy;
  readonly compared: RequestQuestion['compared'];
  /** From the command line. */
  readonly capacity: number | undefined;
  readonly coldStartSeconds: number;
  /** Name of the service file, for messages. */
  readonly file: string;
}

/** What is asked over requests, with the sentences that introduce the result. */
export interface AskedRequests {
  readonly name: string;
  readonly facts: readonly string[];
  readonly question: RequestQuestion;
}

/** Prepares a comparison over requests. Throws SVC_BAD_TRACE for a short trace, SVC_USAGE without a capacity. */
export function askRequests(trace: RequestTrace, name: string, settings: RequestSettings): AskedRequests {
  const { policy, compared, coldStartSeconds } = settings;
  const arrivals = [...trace.perSecond];
  if (arrivals.length <= unscoredSeconds) {
    throw new SvcError('SVC_BAD_TRACE', `The trace ${name} has only ${arrivals.length} s.`, {
      hint: `The first ${unscoredSeconds} s are not scored. Give a longer trace.`,
    });
  }
  const { capacityQps, source } = capacityOf(settings);
  const question: RequestQuestion = {
    trace: { arrivals, capacityQps, coldStartSeconds },
    startedAt: trace.startedAt,
    policy,
    compared,
  };
  const total = arrivals.reduce((sum, count) => sum + count, 0);
  const facts = [
    `${name}: ${duration(arrivals.length)}, ${Math.round(total)} requests, ${rate(total / arrivals.length)} on average; read as ${trace.format.replaceAll('_', ' ')}.`,
    `A replica serves ${rate(capacityQps)} (${source}) and is ready ${coldStartSeconds} s after its launch. The file allows ${policy.minReplicas} to ${policy.maxReplicas} replicas.`,
  ];
  return { name, facts, question };
}

/** Compares policies over requests. */
export function overRequests(
  { name, facts, question }: AskedRequests,
  hourlyUsd: number | undefined,
): Finished<RequestQuestion, RequestAnswer> {
  const { policy } = question;
  const answer = simulateRequests(question);
  const limited = limitedShare(answer, question);
  const advice = `The policy of the file has all of its ${policy.maxReplicas} replicas and is late for ${(limited * 100).toFixed(1)} % of the time. --set max_replicas=N tries more.`;
  return { name, facts: limited > noticedShare ? [...facts, advice] : facts, hourlyUsd, question, answer };
}

/** What one replica serves. */
function capacityOf({ policy, capacity, file }: RequestSettings): { readonly capacityQps: number; readonly source: string } {
  if (capacity !== undefined) return { capacityQps: capacity, source: '--capacity' };
  const { targetQpsPerReplica: target, targetOngoingRequestsPerReplica: ongoing } = policy;
  if (target !== undefined) {
    const weakest = typeof target === 'number' ? target : weakestTarget(target);
    return {
      capacityQps: weakest / usualUtilisation,
      source: `target_qps_per_replica ${weakest} / ${usualUtilisation}; --capacity sets it`,
    };
  }
  if (ongoing !== undefined) {
    const source = `target_ongoing_requests_per_replica ${ongoing} / ${usualUtilisation}, for requests of ${simulatedRequestSeconds} s; --capacity sets it`;
    return { capacityQps: ongoing / usualUtilisation / simulatedRequestSeconds, source };
  }
  throw new SvcError('SVC_USAGE', `${file} does not say how many requests a replica serves.`, {
    hint: 'Give the requests per second that a replica serves at most: --capacity 5',
  });
}

/** The same over spot capacity. */
export function overSpot(question: SpotQuestion, { hourlyUsd, fact }: SpotPrices): Finished<SpotQuestion, SpotAnswer> {
  const { trace, target, coldStartSeconds, spare } = question;
  const facts = [
    spotFact(trace),
    `The service needs ${target} ready replica${target === 1 ? '' : 's'}. One is ready ${coldStartSeconds} s after its launch. dynamic_fallback has ${spare} spare.`,
    fact,
  ];
  return { name: trace.name, facts, hourlyUsd, question, answer: simulateSpot(question) };
}

/** The same over requests and spot capacity together. Throws SVC_BAD_TRACE for a short spot trace. */
export function overBoth(
  asked: AskedRequests,
  question: CombinedQuestion,
  { hourlyUsd, fact }: SpotPrices,
): Finished<CombinedQuestion, CombinedAnswer> {
  const { trace } = question.spot;
  const seconds = combinedSeconds(question);
  if (seconds <= unscoredSeconds) {
    throw new SvcError('SVC_BAD_TRACE', `The spot trace ${trace.name} is too short for the requests: ${Math.max(0, seconds)} s.`, {
      hint: `The first ${unscoredSeconds} s are not scored. Give a longer trace.`,
    });
  }
  const facts = [
    ...asked.facts,
    spotFact(trace),
    fact,
    `Three runs over ${duration(seconds)}: at the start, in the middle and at the end of the spot trace. The placer of the file is ${question.placer}.`,
  ];
  return { name: asked.name, facts, hourlyUsd, question, answer: simulateCombined(question) };
}

function spotFact({ name, capacity, gapSeconds, zones }: SpotTrace): string {
  const seconds = (capacity[0]?.length ?? 0) * gapSeconds;
  return `${name}: ${duration(seconds)}, ${zones.length} zones, capacity each ${gapSeconds} s.`;
}

/** The placer that a file has on spot machines: the default when it has none. */
export function placerOf(task: Task): CombinedQuestion['placer'] {
  const policy = task.service?.replicaPolicy;
  return spotPlacerOf(task) ?? (policy?.dynamicOndemandFallback === true ? 'dynamic_fallback' : 'hedge');
}

/** The spare replicas of the file, if it uses them for spot; otherwise one, as in the publication of SpotHedge. */
export function spareOf({ spotPlacer, numOverprovision }: ReplicaPolicy): number {
  return spotPlacer === 'dynamic_fallback' ? numOverprovision : 1;
}

const rate = (perSecond: number): string => `${Number(perSecond.toPrecision(3))} requests/s`;

/** The two largest units. */
function duration(seconds: number): string {
  return formatDuration(seconds).split(' ').slice(0, 2).join(' ');
}
