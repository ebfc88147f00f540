import { existsSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { basename, resolve } from 'node:path';
import { nameProblem } from '../../domain/names.ts';
import { messageOf, SvcError } from '../../shared/errors.ts';
import { combinedSeconds } from '../../simulate/combined-simulation.ts';
import type { Findings } from '../../simulate/report/report.ts';
import { autoscalerOf } from '../../simulate/request-policies.ts';
import type { SpotTrace } from '../../simulate/spot-fleet.ts';
import type { CommandContext } from '../command.ts';
import { renderFindings } from '../listing/simulation-listing.ts';
import { readSimulatedService, type TaskArgs } from '../task-source.ts';
import { readRequestFile, readSpotFile } from './read-traces.ts';
import { replayedService, replayedTask } from './replayed-requests.ts';
import { comparedPairs, comparedPolicies, numberOf, requestNames, spotNames } from './simulate-options.ts';
import {
  askRequests,
  overBoth,
  overRequests,
  overSpot,
  placerOf,
  spareOf,
  type AskedRequests,
  type RequestSettings,
} from './simulation-runs.ts';
import { spotPricesFor } from './spot-prices.ts';

/** From launch to ready of a model of 7 billion parameters on a new machine, s: measured by others. */
const usualColdStartSeconds = 183;

/** What a spot replica costs relative to one on demand, when the user does not say. */
const usualSpotPrice = 1 / 3;

interface SimulateArgs extends TaskArgs {
  /** A service file, or the name of a running service. */
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

/** `svc simulate`: runs the decisions of production in virtual time over traces, beside those of other tools. */
export async function simulate(args: SimulateArgs, context: CommandContext): Promise<void> {
  const { ui, cwd } = context;
  const given = comparedPolicies(args.compare);
  const coldStartSeconds = numberOf(args.coldStart, '--cold-start', 0, 86_400);
  const share = numberOf(args.spotPrice, '--spot-price', 0.001, 1);
  const capacity = numberOf(args.capacity, '--capacity', 0.000_001, 1_000_000);
  const price = numberOf(args.price, '--price', 0, 1_000_000);
  const isReplay = args.with !== undefined || isServiceName(args, cwd);
  checkTraces(args, isReplay);
  const file = args.with ?? args.target;
  const isOwnFile = isReplay && args.with === undefined;
  const task = isOwnFile ? await replayedTask(args.target, args.set, context) : await readSimulatedService(file, args.set, args, context);
  const { replicaPolicy: policy } = task.service;
  // The file's own policy has a row by itself.
  const compared = given.requests ?? requestNames.filter((name) => name !== autoscalerOf(policy));
  const replayed = isReplay ? await replayedService(args.target, context) : undefined;
  const settings: RequestSettings = {
    policy,
    compared,
    capacity,
    file: basename(file),
    coldStartSeconds: coldStartSeconds ?? replayed?.coldStartSeconds ?? usualColdStartSeconds,
  };
  const trace = args.requests === undefined ? replayed?.trace : await readRequestFile(args.requests, context);
  const name = args.requests === undefined ? `access log of ${args.target}` : basename(args.requests);
  const asked = trace && askRequests(trace, name, settings);
  checkCombination(args, given, asked !== undefined);
  const hourlyUsd = price ?? replayed?.hourlyUsd;
  const spot: Findings['spot'][number][] = [];
  const both: Findings['both'][number][] = [];
  for (const path of args.spot) {
    const spotTrace = await readSpotFile(path, context);
    const prices = await spotPricesFor(spotTrace, task, context.paths.catalogDir, { share, usualShare: usualSpotPrice, hourlyUsd });
    const question = { trace: spotTrace, spotPrices: prices.spotPrices, spare: spareOf(policy) };
    if (asked === undefined) {
      const target = args.replicas ?? Math.max(1, policy.minReplicas);
      const ofSpot = { ...question, target, coldStartSeconds: settings.coldStartSeconds, compared: given.spot ?? spotNames };
      spot.push(overSpot(ofSpot, prices));
    } else {
      const placer = placerOf(task);
      const pairs = comparedPairs(given, { autoscaler: autoscalerOf(policy), placer });
      both.push(overBoth(asked, { requests: asked.question, spot: question, placer, compared: pairs }, prices));
    }
  }
  const requests = asked === undefined || both.length > 0 ? undefined : overRequests(asked, hourlyUsd);
  const findings: Findings = { service: basename(args.target), requests, spot, both };
  if (args.html !== undefined) await writeReport(resolve(cwd, args.html), findings);
  if (args.json) ui.json(asJson(findings, hourlyUsd));
  else for (const line of renderFindings(findings, ui)) ui.print(line);
  if (args.html !== undefined) ui.say(`The report is in ${args.html}`);
}

/** Without requests, a word that names no file is a running service. */
function isServiceName({ target, requests }: SimulateArgs, cwd: string): boolean {
  if (requests !== undefined || /\.ya?ml$/.test(target)) return false;
  return nameProblem(target) === undefined && !existsSync(resolve(cwd, target));
}

/** Requests come from a file or from a running service. */
function checkTraces(args: SimulateArgs, isReplay: boolean): void {
  if (!isReplay && args.requests === undefined && args.spot.length === 0) {
    throw new SvcError('SVC_USAGE', 'There is nothing to simulate: no trace is given.', {
      hint: 'Give requests with --requests TRACE or spot capacity with --spot TRACE. For a running service: svc simulate NAME',
    });
  }
  if (args.with !== undefined && args.requests !== undefined) {
    throw new SvcError('SVC_USAGE', '--with replays the requests of a running service, and --requests names others.', {
      hint: 'Leave one of them out.',
    });
  }
}

/** What the given traces leave without meaning. */
function checkCombination({ spot, replicas }: SimulateArgs, { pairs }: ReturnType<typeof comparedPolicies>, hasRequests: boolean): void {
  const isBoth = hasRequests && spot.length > 0;
  if (pairs.length > 0 && !isBoth) {
    throw new SvcError('SVC_USAGE', 'A pair of --compare needs requests and spot capacity together.', {
      hint: 'Give both --requests TRACE and --spot TRACE, or names without +.',
    });
  }
  if (isBoth && replicas !== undefined) {
    throw new SvcError('SVC_USAGE', 'With requests, the autoscaler decides the number of replicas, not --replicas.', {
      hint: 'Leave out --replicas, or --requests.',
    });
  }
}

async function writeReport(path: string, findings: Findings): Promise<void> {
  const { renderReport } = await import('../../simulate/report/report.ts');
  try {
    await writeFile(path, renderReport(findings));
  } catch (error) {
    throw new SvcError('SVC_FILE_UNREADABLE', `The report ${path} cannot be written: ${messageOf(error)}.`, { cause: error });
  }
}

function asJson({ service, requests, spot, both }: Findings, hourlyUsd: number | undefined) {
  return {
    service,
    hourlyUsd: hourlyUsd ?? null,
    requests: requests === undefined ? null : { ...requestsAsJson(requests), scores: requests.answer.scores },
    spot: spot.map(({ name, hourlyUsd: usd, question: { trace, compared: _compared, ...settings }, answer }) => ({
      trace: { ...spotTraceAsJson(trace), name },
      ...settings,
      hourlyUsd: usd ?? null,
      scores: answer.scores,
    })),
    both: both.map(({ name, hourlyUsd: usd, question, answer }) => ({
      name,
      requests: requestsAsJson({ name, question: question.requests }),
      spot: { ...spotTraceAsJson(question.spot.trace), spotPrices: question.spot.spotPrices, spare: question.spot.spare },
      seconds: combinedSeconds(question),
      placer: question.placer,
      hourlyUsd: usd ?? null,
      scores: answer.scores,
    })),
  };
}

function spotTraceAsJson({ name, zones, gapSeconds, capacity }: SpotTrace) {
  return { name, zones, gapSeconds, steps: capacity[0]?.length ?? 0 };
}

function requestsAsJson({ name, question }: Pick<AskedRequests, 'name' | 'question'>) {
  const { arrivals, capacityQps, coldStartSeconds } = question.trace;
  const requests = arrivals.reduce((sum, count) => sum + count, 0);
  return {
    trace: { name, seconds: arrivals.length, requests },
    capacityQps,
    coldStartSeconds,
    minReplicas: question.policy.minReplicas,
    maxReplicas: question.policy.maxReplicas,
  };
}
