import type { ApiClient } from '../../api/client.ts';
import type { RouteReply } from '../../api/contract.ts';
import { SvcError } from '../../shared/errors.ts';
import { wrapText } from '../command-text.ts';
import type { CommandContext } from '../command.ts';
import { accessTitles, isAccessLine, renderAccessLine, renderProcessLine } from '../listing/access-line.ts';
import { showLog } from '../listing/log-lines.ts';
import { oneLine } from '../listing/display-text.ts';
import { renderEvent } from '../listing/event-line.ts';
import { renderPlan } from '../listing/plan-listing.ts';
import { serviceNotFound, parseId } from '../name-patterns.ts';
import type { Ui } from '../ui.ts';

/** The API of the controller. Without a controller there is no service. */
export async function apiFor(service: string, { connection }: CommandContext): Promise<ApiClient> {
  const api = await connection.existing();
  if (api === undefined) throw serviceNotFound(service);
  return api;
}

interface EventsArgs {
  readonly name: string;
  readonly follow: boolean;
  readonly json: boolean;
}

/** `svc serve events`: prints one line per change, oldest first. */
export async function serveEvents(args: EventsArgs, context: CommandContext): Promise<void> {
  const { ui } = context;
  const api = await apiFor(args.name, context);
  for await (const event of api.lines('serviceEvents', { params: { name: args.name }, query: { follow: args.follow } })) {
    ui.print(args.json ? JSON.stringify(event) : renderEvent(event, ui));
  }
}

interface ExplainArgs {
  readonly name: string;
  readonly id: string | undefined;
  readonly all: boolean;
  readonly json: boolean;
}

/** Timeout, ms: a plan asks the providers for their offers. */
const explainTimeoutMs = 60_000;

/** `svc serve explain`: how machines were found, and which offers there are for one more replica. */
export async function serveExplain({ name, id, all, json }: ExplainArgs, context: CommandContext): Promise<void> {
  const { ui } = context;
  const requestedId = id === undefined ? undefined : parseId(id, 'replica');
  const api = await apiFor(name, context);
  const query = { all, ...(requestedId !== undefined && { id: requestedId }) };
  const reply = await api.call('explainService', { params: { name }, query, timeoutMs: explainTimeoutMs });
  if (requestedId !== undefined && reply.replicas.length === 0)
    throw new SvcError('SVC_REPLICA_NOT_FOUND', `Service '${name}' has no replica ${requestedId}.`, {
      hint: `Run: svc serve status ${name}`,
    });
  if (json) ui.json(reply);
  else for (const line of render(reply, all, context)) ui.print(line);
}

function render({ replicas, plan }: RouteReply<'explainService'>, all: boolean, { ui }: CommandContext): readonly string[] {
  const searches = replicas.flatMap(({ id, status, reason, reachedBy, steps }) => [
    ui.paint('strong', `Replica ${id} (${status})`),
    ...(reachedBy === null ? [] : [wrapText(`  Requests reach it by: ${oneLine(reachedBy)}`, ui.outWidth)]),
    ...(reason === null ? [] : [wrapText(`  ${oneLine(reason)}`, ui.outWidth)]),
    ...steps.map((step) => renderEvent(step, ui, '  ')),
    '',
  ]);
  if (plan === null) return searches;
  return [...searches, ui.paint('strong', 'What could be had for one more replica now'), ...renderPlan(plan, { all, width: ui.outWidth })];
}

interface LogsArgs {
  readonly name: string;
  readonly id: string | undefined;
  readonly controller: boolean;
  readonly loadBalancer: boolean;
  readonly follow: boolean | undefined;
  readonly tail: number | undefined;
  readonly json: boolean;
}

/** `svc serve logs`: the log of a replica, of the service's controller or of its load balancer. */
export async function serveLogs(args: LogsArgs, context: CommandContext): Promise<void> {
  const targets = [args.id !== undefined, args.controller, args.loadBalancer].filter(Boolean);
  if (targets.length > 1) {
    throw new SvcError('SVC_USAGE', 'Only one log can be shown at a time.', {
      hint: 'Give a replica id, --controller or --load-balancer.',
    });
  }
  const api = await apiFor(args.name, context);
  const target = args.controller ? 'controller' : args.loadBalancer ? 'load-balancer' : 'replica';
  const id = target === 'replica' ? await replicaId(args, api) : undefined;
  const query = {
    target,
    follow: args.follow ?? true,
    ...(id === undefined ? {} : { id }),
    ...(args.tail === undefined ? {} : { tail: args.tail }),
  } as const;
  const chunks = api.text('serviceLogs', { params: { name: args.name }, query });
  if (args.loadBalancer) await showLoadBalancer(textLines(chunks), args.json, context.ui);
  else if (args.controller) await showController(textLines(chunks), args.json, context.ui);
  else await showLog(chunks, context.ui);
}

/** Shows the log of the reconciler as text; with --json as its JSON lines, without the output of a failed start. */
async function showController(lines: AsyncIterable<string>, json: boolean, ui: Ui): Promise<void> {
  for await (const line of lines) {
    const shown = renderProcessLine(line, ui);
    if (!json) ui.print(shown ?? oneLine(line));
    else if (shown !== undefined) ui.print(line);
  }
}

/** Shows requests and the messages of the balancer's process. With --json it prints only requests, for programs. */
async function showLoadBalancer(lines: AsyncIterable<string>, json: boolean, ui: Ui): Promise<void> {
  if (ui.outIsTerminal && !json) ui.print(ui.paint('strong', accessTitles));
  for await (const line of lines) {
    if (!json) ui.print(renderAccessLine(line, ui));
    else if (isAccessLine(line)) ui.print(line);
  }
}

/** The requested replica, or the newest. */
async function replicaId(args: LogsArgs, api: ApiClient): Promise<number> {
  if (args.id !== undefined) return parseId(args.id, 'replica');
  const service = await api.call('getService', { params: { name: args.name } });
  const newest = service.replicas.at(-1);
  if (newest === undefined) {
    throw new SvcError('SVC_REPLICA_NOT_FOUND', `The service '${args.name}' has no replica yet.`, {
      hint: `Run: svc serve logs ${args.name} --controller`,
    });
  }
  return newest.id;
}

/** Lines, without their ends, from chunks of bytes. A last line without an end counts. */
export async function* textLines(pieces: AsyncIterable<Uint8Array>): AsyncGenerator<string> {
  const decoder = new TextDecoder();
  let rest = '';
  for await (const piece of pieces) {
    const lines = (rest + decoder.decode(piece, { stream: true })).split('\n');
    rest = lines.pop() ?? '';
    yield* lines;
  }
  rest += decoder.decode();
  if (rest !== '') yield rest;
}

interface MetricsArgs {
  readonly name: string;
}

/** `svc serve metrics`: prints the balancer's metrics in the format that Prometheus scrapes. */
export async function serveMetrics(args: MetricsArgs, context: CommandContext): Promise<void> {
  const api = await apiFor(args.name, context);
  for await (const chunk of api.text('serviceMetrics', { params: { name: args.name } })) context.ui.write(chunk);
}

interface RetryArgs {
  readonly name: string;
  readonly json: boolean;
}

/** `svc serve retry`: ends the refusals of a service, so that it asks its providers again at once. */
export async function serveRetry({ name, json }: RetryArgs, context: CommandContext): Promise<void> {
  const { ui } = context;
  const api = await apiFor(name, context);
  const reply = await api.call('retryService', { params: { name } });
  if (json) ui.json(reply);
  else {
    ui.say(`Service '${name}' tries again now: ${endedText(reply.refusals)}${restartedText(reply)}. See: svc serve status ${name}`);
  }
}

function restartedText({ restarted }: RouteReply<'retryService'>): string {
  if (restarted === undefined) return '';
  return restarted === 'canary' ? ', and the canary begins again at its first step' : `, and the ${restarted} update begins again`;
}

function endedText(refusals: number): string {
  if (refusals === 0) return 'no refusal was in force';
  return refusals === 1 ? '1 refusal was ended' : `${refusals} refusals were ended`;
}

interface TerminateReplicaArgs {
  readonly name: string;
  readonly id: string;
  readonly purge: boolean;
  readonly yes: boolean;
  readonly json: boolean;
}

/** `svc serve terminate-replica`: drains and terminates one replica. The service replaces it. */
export async function serveTerminateReplica(args: TerminateReplicaArgs, context: CommandContext): Promise<void> {
  const { ui } = context;
  const id = parseId(args.id, 'replica');
  const api = await apiFor(args.name, context);
  const question = `Terminate replica ${id} of service '${args.name}'?`;
  if (!(await ui.confirm(question, args.yes))) throw new SvcError('SVC_ABORTED', 'Nothing was terminated.');
  const reply = await api.call('terminateReplica', { params: { name: args.name, id }, query: { purge: args.purge } });
  if (args.json) ui.json(reply);
  else ui.say(`Replica ${id} of service '${args.name}' is terminating; a new one takes its place.`);
}
