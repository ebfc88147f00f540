import { existsSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { basename, resolve } from 'node:path';
import { nameProblem } from '../../domain/names.ts';
import { messageOf, SvcError } from '../../shared/errors.ts';
import type { Findings, Finished } from '../../simulate/report/report.ts';
import { autoscalerOf } from '../../simulate/request-policies.ts';
import type { RequestAnswer, RequestQuestion } from '../../simulate/request-simulation.ts';
import type { SpotAnswer, SpotQuestion } from '../../simulate/spot-simulation.ts';
import type { CommandContext } from '../command.ts';
import { renderFindings } from '../listing/simulation-listing.ts';
import { readServiceSection, type TaskArgs } from '../task-source.ts';
import { readRequestFile, readSpotFile } from './read-traces.ts';
import { replayedSection, replayedService } from './replayed-requests.ts';
import { comparedPolicies, numberOf, requestNames } from './simulate-options.ts';
import { meanReplicas, overRequests, overSpot, spareOf, type RequestSettings } from './simulation-runs.ts';

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
  const spotPrice = numberOf(args.spotPrice, '--spot-price', 0.001, 1) ?? usualSpotPrice;
  const capacity = numberOf(args.capacity, '--capacity', 0.000_001, 1_000_000);
  const price = numberOf(args.price, '--price', 0, 1_000_000);
  const isReplay = args.with !== undefined || isServiceName(args, cwd);
  checkTraces(args, isReplay);
  const file = args.with ?? args.target;
  const isOwnFile = isReplay && args.with === undefined;
  const { replicaPolicy: policy } = isOwnFile
    ? await replayedSection(args.target, args.set, context)
    : await readServiceSection(file, args.set, args, context);
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

/** Without a trace, a word that names no file is a running service. */
function isServiceName({ target, requests, spot }: SimulateArgs, cwd: string): boolean {
  if (requests !== undefined || spot.length > 0 || /\.ya?ml$/.test(target)) return false;
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
