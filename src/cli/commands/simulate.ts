import { writeFile } from 'node:fs/promises';
import { basename, resolve } from 'node:path';
import type { ReplicaPolicy, ResourceAlternatives } from '../../domain/task.ts';
import { didYouMean } from '../../shared/did-you-mean.ts';
import { messageOf, SvcError } from '../../shared/errors.ts';
import { requestPolicies } from '../../simulate/request-policies.ts';
import { simulateRequests, unscoredSeconds, type RequestAnswer, type RequestQuestion } from '../../simulate/request-simulation.ts';
import type { Findings, Finished } from '../../simulate/report/report.ts';
import { usualUtilisation } from '../../simulate/scale-world.ts';
import { spotPolicies } from '../../simulate/spot-policies.ts';
import { simulateSpot, type SpotAnswer, type SpotQuestion } from '../../simulate/spot-simulation.ts';
import { requestFormats } from '../../simulate/traces/request-formats.ts';
import type { RequestTrace } from '../../simulate/traces/request-trace.ts';
import type { CommandContext } from '../command.ts';
import { renderFindings } from '../listing/simulation-listing.ts';
import { readServiceSection, type TaskArgs } from '../task-source.ts';
import { readRequestFile, readSpotFile } from './read-traces.ts';

/** From launch to ready of a model of 7 billion parameters on a new machine, s: measured by others. */
const usualColdStartSeconds = 183;

/** What a spot replica costs relative to one on demand, when the user does not say. */
const usualSpotPrice = 1 / 3;

interface SimulateArgs extends TaskArgs {
  readonly file: string;
  readonly requests: string | undefined;
  readonly spot: readonly string[];
  readonly coldStart: string | undefined;
  readonly capacity: string | undefined;
  readonly replicas: number | undefined;
  readonly spotPrice: string | undefined;
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
  if (args.requests === undefined && args.spot.length === 0) {
    throw new SvcError('SVC_USAGE', 'There is nothing to simulate: no trace is given.', {
      hint: 'Give requests with --requests FILE, spot capacity with --spot FILE, or both. Run: svc simulate --help',
    });
  }
  const compared = comparedPolicies(args.compare);
  const coldStartSeconds = numberOf(args.coldStart, '--cold-start', 0, 86_400) ?? usualColdStartSeconds;
  const { service } = await readServiceSection(args.file, args.set, args, context);
  const { replicaPolicy: policy } = service;
  const requests =
    args.requests === undefined
      ? undefined
      : overRequests(await readRequestFile(args.requests, context), { name: basename(args.requests), policy, compared, coldStartSeconds, args });
  const target = args.replicas ?? Math.max(1, requests === undefined ? policy.minReplicas : meanReplicas(requests));
  const spot: Finished<SpotQuestion, SpotAnswer>[] = [];
  for (const path of args.spot) {
    const trace = await readSpotFile(path, context);
    const spotPrice = numberOf(args.spotPrice, '--spot-price', 0.001, 1) ?? usualSpotPrice;
    spot.push(overSpot({ trace, target, coldStartSeconds, spotPrice, compared: compared.spot }));
  }
  const findings: Findings = { service: basename(args.file), requests, spot };
  if (args.html !== undefined) await writeReport(resolve(cwd, args.html), findings);
  if (args.json) ui.json(asJson(findings));
  else for (const line of renderFindings(findings, ui)) ui.print(line);
  if (args.html !== undefined) ui.say(`The report is in ${args.html}`);
}
