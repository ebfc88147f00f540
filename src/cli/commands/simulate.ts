import { writeFile } from 'node:fs/promises';
import { basename, resolve } from 'node:path';
import type { ReplicaPolicy } from '../../domain/task.ts';
import { didYouMean } from '../../shared/did-you-mean.ts';
import { messageOf, SvcError } from '../../shared/errors.ts';
import { autoscalerOf, requestPolicies, weakestTarget } from '../../simulate/request-policies.ts';
import {
  limitedShare,
  simulateRequests,
  unscoredSeconds,
  type RequestAnswer,
  type RequestQuestion,
} from '../../simulate/request-simulation.ts';
import type { Findings, Finished } from '../../simulate/report/report.ts';
import { simulatedRequestSeconds, usualUtilisation } from '../../simulate/scale-world.ts';
import { spotPolicies } from '../../simulate/spot-policies.ts';
import { simulateSpot, type SpotAnswer, type SpotQuestion } from '../../simulate/spot-simulation.ts';
import type { RequestTrace } from '../../simulate/traces/request-trace.ts';
import type { CommandContext } from '../command.ts';
import { formatDuration } from '../listing/format-values.ts';
import { renderFindings } from '../listing/simulation-listing.ts';
import { readServiceSection, type TaskArgs } from '../task-source.ts';
import { readRequestFile, readSpotFile } from './read-traces.ts';
import { replayedService } from './replayed-requests.ts';

/** From launch to ready of a model of 7 billion parameters on a new machine, s: measured by others. */
const usualColdStartSeconds = 183;

/** What a spot replica costs relative to one on demand, when the user does not say. */
const usualSpotPrice = 1 / 3;

/** `max_replicas` is worth a sentence when it makes requests late for longer than this share of the time. */
const noticedShare = 0.01;

interface SimulateArgs extends TaskArgs {
  /** A service file, or with `with` the name of a service. */
  readonly target: string;
  readonly with: string | undefined;
  readonly requests: string | undefined;
  readonly spot: readonly string[];
  readonly coldStart: string | undefined;
  readonly capacity: string | undefined;
  readonly replicas: number | undefined;
  readonly spotPrice: string | undefined;
  readonly price: string | undefined;
  readonly compare: string | undefined;
  readonly set: readonly string[];
  readonly html: string | undefined;
  readonly json: boolean;
}

type RequestPolicyName = keyof typeof requestPolicies;
type SpotPolicyName = keyof typeof spotPolicies;

/** `svc simulate`: runs the decisions of production in virtual time over traces, beside those of other tools. */
export async function simulate(args: SimulateArgs, context: CommandContext): Promise<void> {
  const { ui, cwd } = context;
  const given = comparedPolicies(args.compare);
  const coldStartSeconds = numberOf(args.coldStart, '--cold-start', 0, 86_400);
  const spotPrice = numberOf(args.spotPrice, '--spot-price', 0.001, 1) ?? usualSpotPrice;
  const capacity = numberOf(args.capacity, '--capacity', 0.000_001, 1_000_000);
  const price = numberOf(args.price, '--price', 0, 1_000_000);
  const isReplay = args.with !== undefined;
  if (!isReplay && args.requests === undefined && args.spot.length === 0) {
    throw new SvcError('SVC_USAGE', 'There is nothing to simulate: no trace is given.', {
      hint: 'Give requests with --requests TRACE or spot capacity with --spot TRACE. For a running service: svc simulate NAME --with FILE',
    });
  }
  if (isReplay && args.requests !== undefined) {
    throw new SvcError('SVC_USAGE', '--with replays the requests of a running service, and --requests names others.', {
      hint: 'Leave one of them out.',
    });
  }
  const file = args.with ?? args.target;
  const { replicaPolicy: policy } = await readServiceSection(file, args.set, args, context);
  // The file's own policy has a row by itself.
  const compared = { ...given, requests: given.requests ?? requestNames.filter((name) => name !== autoscalerOf(policy)) };
  const replayed = isReplay ? await replayedService(args.target, context) : undefined;
  const settings = {
    policy,
    compared,
    capacity,
    file: basename(file),
    coldStartSeconds: coldStartSeconds ?? replayed?.coldStartSeconds ?? usualColdStartSeconds,
  };
  const trace = args.requests === undefined ? replayed?.trace : await readRequestFile(args.requests, context);
  const name = args.requests === undefined ? `access log of ${args.target}` : basename(args.requests);
  const requests = trace && overRequests(trace, name, settings);
  const target = args.replicas ?? Math.max(1, requests === undefined ? policy.minReplicas : meanReplicas(requests));
  const spot: Finished<SpotQuestion, SpotAnswer>[] = [];
  for (const path of args.spot) {
    const question = { trace: await readSpotFile(path, context), target, spotPrice, spare: spareOf(policy), compared: given.spot };
    spot.push(overSpot({ ...question, coldStartSeconds: settings.coldStartSeconds }));
  }
  const findings: Findings = { service: basename(args.target), hourlyUsd: price ?? replayed?.hourlyUsd, requests, spot };
  if (args.html !== undefined) await writeReport(resolve(cwd, args.html), findings);
  if (args.json) ui.json(asJson(findings));
  else for (const line of renderFindings(findings, ui)) ui.print(line);
  if (args.html !== undefined) ui.say(`The report is in ${args.html}`);
}

interface RequestSettings {
  readonly policy: ReplicaPolicy;
  readonly compared: { readonly requests: readonly RequestPolicyName[] };
  /** From the command line. */
  readonly capacity: number | undefined;
  readonly coldStartSeconds: number;
  /** Name of the service file, for messages. */
  readonly file: string;
}

function overRequests(trace: RequestTrace, name: string, settings: RequestSettings): Finished<RequestQuestion, RequestAnswer> {
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
    compared: compared.requests,
  };
  const total = arrivals.reduce((sum, count) => sum + count, 0);
  const facts = [
    `${name}: ${duration(arrivals.length)}, ${Math.round(total)} requests, ${rate(total / arrivals.length)} on average; read as ${trace.format.replaceAll('_', ' ')}.`,
    `A replica serves ${rate(capacityQps)} (${source}) and is ready ${coldStartSeconds} s after its launch. The file allows ${policy.minReplicas} to ${policy.maxReplicas} replicas.`,
  ];
  const answer = simulateRequests(question);
  const limited = limitedShare(answer, question);
  const advice = `The policy of the file has all of its ${policy.maxReplicas} replicas and is late for ${(limited * 100).toFixed(1)} % of the time. --set max_replicas=N tries more.`;
  return { name, facts: limited > noticedShare ? [...facts, advice] : facts, question, answer };
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

function overSpot(question: SpotQuestion): Finished<SpotQuestion, SpotAnswer> {
  const { trace, target, coldStartSeconds, spotPrice, spare } = question;
  const seconds = (trace.capacity[0]?.length ?? 0) * trace.gapSeconds;
  const facts = [
    `${trace.name}: ${duration(seconds)}, ${trace.zones.length} zones, capacity each ${trace.gapSeconds} s.`,
    `The service needs ${target} ready replica${target === 1 ? '' : 's'}. One is ready ${coldStartSeconds} s after its launch. Spot costs ${spotPrice.toFixed(2)} of the price on demand. dynamic_fallback has ${spare} spare.`,
  ];
  return { name: trace.name, facts, question, answer: simulateSpot(question) };
}

/** The spare replicas of the file, if it uses them for spot; otherwise one, as in the publication of SpotHedge. */
function spareOf({ spotPlacer, numOverprovision }: ReplicaPolicy): number {
  return spotPlacer === 'dynamic_fallback' ? numOverprovision : 1;
}

/** The mean number of replicas that the file's policy had, rounded. */
function meanReplicas({ question, answer }: Finished<RequestQuestion, RequestAnswer>): number {
  const hours = (question.trace.arrivals.length - unscoredSeconds) / 3_600;
  return Math.round((answer.scores[0]?.replicaHours ?? 0) / hours);
}

interface ComparedPolicies {
  /** Undefined: all but the one of the file. */
  readonly requests: readonly RequestPolicyName[] | undefined;
  readonly spot: readonly SpotPolicyName[];
}

const requestNames = Object.keys(requestPolicies).filter(isRequestPolicy);
const spotNames = Object.keys(spotPolicies).filter(isSpotPolicy);

function isRequestPolicy(name: string): name is RequestPolicyName {
  return Object.hasOwn(requestPolicies, name);
}

function isSpotPolicy(name: string): name is SpotPolicyName {
  return Object.hasOwn(spotPolicies, name);
}

/** The policies of `--compare`; all when absent. A list for one of the two kinds leaves the other complete. */
function comparedPolicies(list: string | undefined): ComparedPolicies {
  const names = (list ?? '')
    .split(',')
    .map((name) => name.trim())
    .filter((name) => name !== '');
  for (const name of names) {
    if (isRequestPolicy(name) || isSpotPolicy(name)) continue;
    const meant = didYouMean(name, [...requestNames, ...spotNames]);
    throw new SvcError('SVC_USAGE', `There is no policy '${name}' to compare.`, {
      hint: `${meant === undefined ? '' : `Did you mean '${meant}'? `}Over requests: ${requestNames.join(', ')}. Over spot capacity: ${spotNames.join(', ')}.`,
    });
  }
  const requests = names.filter(isRequestPolicy);
  const spot = names.filter(isSpotPolicy);
  return { requests: requests.length > 0 ? requests : undefined, spot: spot.length > 0 ? spot : spotNames };
}

function numberOf(text: string | undefined, option: string, least: number, most: number): number | undefined {
  if (text === undefined) return undefined;
  const number = text.trim() === '' ? Number.NaN : Number(text);
  if (number >= least && number <= most) return number;
  throw new SvcError('SVC_USAGE', `${option} is '${text}', which is not a number from ${least} to ${most}.`, {
    hint: 'Run: svc simulate --help',
  });
}

async function writeReport(path: string, findings: Findings): Promise<void> {
  const { renderReport } = await import('../../simulate/report/report.ts');
  try {
    await writeFile(path, renderReport(findings));
  } catch (error) {
    throw new SvcError('SVC_FILE_UNREADABLE', `The report ${path} cannot be written: ${messageOf(error)}.`, { cause: error });
  }
}

function asJson({ service, hourlyUsd, requests, spot }: Findings) {
  return {
    service,
    hourlyUsd: hourlyUsd ?? null,
    requests: requests === undefined ? null : requestsAsJson(requests),
    spot: spot.map(({ name, question: { trace, compared: _compared, ...settings }, answer }) => ({
      trace: { name, zones: trace.zones, gapSeconds: trace.gapSeconds, steps: trace.capacity[0]?.length ?? 0 },
      ...settings,
      scores: answer.scores,
    })),
  };
}

function requestsAsJson({ name, question, answer }: Finished<RequestQuestion, RequestAnswer>) {
  const { arrivals, capacityQps, coldStartSeconds } = question.trace;
  const requests = arrivals.reduce((sum, count) => sum + count, 0);
  return {
    trace: { name, seconds: arrivals.length, requests },
    capacityQps,
    coldStartSeconds,
    minReplicas: question.policy.minReplicas,
    maxReplicas: question.policy.maxReplicas,
    scores: answer.scores,
  };
}

const rate = (perSecond: number): string => `${Number(perSecond.toPrecision(3))} requests/s`;

/** The two largest units. */
function duration(seconds: number): string {
  return formatDuration(seconds).split(' ').slice(0, 2).join(' ');
}
