import type { ServiceView } from '../../api/contract.ts';
import { hourlyPrice } from '../../domain/price.ts';
import type { Task } from '../../domain/task.ts';
import { SvcError } from '../../shared/errors.ts';
import { checkName } from '../check-name.ts';
import type { CommandContext } from '../context.ts';
import { oneLine } from '../display-text.ts';
import { followUntilReady } from '../follow-service.ts';
import { readServiceFile, type ServiceFile, type TaskArgs } from '../task-source.ts';
import { renderController, renderPlan } from '../plan-listing.ts';
import { planService, refuseEmpty } from '../service-plan.ts';
import type { Ui } from '../ui.ts';

interface UpArgs extends TaskArgs {
  readonly file: string;
  readonly name: string | undefined;
  readonly expose: boolean;
  readonly endpointPort: number | undefined;
  readonly wait: boolean | undefined;
  readonly yes: boolean;
  readonly json: boolean;
}

/** Of an endpoint that listens on all addresses. */
const exposedNote = ' (exposed: other machines reach it)';

/** Copying a large workdir takes its time, ms. */
const createTimeoutMs = 600_000;

/** `svc serve up`: checks the file here, has the controller put the service up, and follows it where somebody watches. */
export async function serveUp(args: UpArgs, context: CommandContext): Promise<void> {
  const { ui } = context;
  if (args.name !== undefined) checkName(args.name);
  const { task, body, summary } = await readServiceFile(args.file, args, context);
  await context.connection.checkWish();
  if (!(await agreesToCost(task, args.yes, context))) throw new SvcError('SVC_ABORTED', 'Nothing was put up.');

  const created = await create(args, { task, body }, context);
  if (created === undefined) return;
  const { name } = created;
  const follow = args.wait ?? ui.outIsTerminal;
  if (!args.json) {
    // Not before the controller has taken it: what is refused needs no summary.
    for (const line of summary) ui.say(line);
    ui.say(`Service '${name}' is coming up at ${created.endpoint}${created.exposed ? exposedNote : ''}`);
  }
  const service = follow ? await followUntilReady(name, context) : created;
  if (service === undefined) {
    ui.say(`Service '${name}' goes on coming up. To take it down: svc serve down ${name}`);
    return;
  }
  if (args.json) ui.json(service);
  else if (ui.outIsTerminal) showOnTerminal(service, follow, ui);
  else showInPipe(service, follow, ui);
}

/** What costs money is shown with its price and asked about; what is free is not. */
async function agreesToCost(task: Task, yes: boolean, context: CommandContext): Promise<boolean> {
  const { ui, connection } = context;
  const plan = await planService(task, false, context);
  await refuseEmpty(plan, task, context);
  const controller = await connection.plan(task.resources);
  const added = plan.hourlyUsd + (controller?.isNew === true ? controller.hourlyUsd : 0);
  // What leaves this machine, or does not become as it was asked for, is told also when it costs nothing.
  if (controller !== undefined && (added > 0 || controller.isNew || controller.note !== null)) {
    for (const line of renderController(controller)) ui.say(line);
  }
  if (added === 0) {
    // What was chosen costs nothing; that a place before it was left out is told all the same.
    for (const { provider, region, verdict, why } of plan.offers)
      if (verdict === 'refused') ui.say(`Not at ${provider}/${region}: ${oneLine(why)}`);
    return true;
  }
  for (const line of renderPlan(plan, { all: false, width: ui.sayWidth })) ui.quote(line);
  return ui.confirm(`Put it up for about ${hourlyPrice(added)}?`, yes, true);
}

/** The service as it begins; undefined when interrupted meanwhile. */
async function create(
  args: UpArgs,
  { task, body: given }: Pick<ServiceFile, 'task' | 'body'>,
  { ui, connection, signal }: CommandContext,
): Promise<ServiceView | undefined> {
  const progress = ui.progress();
  progress.now('Handing the service to the controller');
  try {
    const onStep = (text: string): void => progress.now(text);
    const api = await connection.client(onStep, task.resources);
    const upload = await connection.bring(task, given.file, onStep);
    const body = {
      ...given,
      ...(upload !== undefined && { upload }),
      ...(args.name !== undefined && { name: args.name }),
      ...(args.expose && { expose: true }),
      ...(args.endpointPort !== undefined && { port: args.endpointPort }),
    };
    return (await api.call('createService', { body, timeoutMs: createTimeoutMs })).service;
  } catch (error) {
    if (!signal.aborted) throw error;
    progress.stop();
    ui.say('Interrupted; to see whether the service was put up: svc serve status');
    return undefined;
  } finally {
    progress.stop();
  }
}

/** What people do next with a service. */
function nextSteps({ name }: ServiceView): readonly string[] {
  return [`  See status    svc serve status ${name}`, `  Read logs     svc serve logs ${name}`, `  Take it down  svc serve down ${name}`];
}

function showOnTerminal(service: ServiceView, followed: boolean, ui: Ui): void {
  const { name, replicasReady, targetReplicas } = service;
  if (followed) ui.print(`${ui.paint('good', '✓')} Service '${name}' is ready (${replicasReady} of ${targetReplicas} replicas).`);
  ui.print('');
  ui.print(`  ${ui.paint('strong', 'Endpoint')}      ${service.endpoint}${service.exposed ? exposedNote : ''}`);
  ui.print('');
  for (const line of nextSteps(service)) ui.print(ui.asTyped(line));
}

/** A program that reads the result wants the endpoint and nothing else; people read what is said beside it. */
function showInPipe(service: ServiceView, followed: boolean, ui: Ui): void {
  if (followed) ui.say(`Service '${service.name}' is ready.`);
  for (const line of nextSteps(service)) ui.say(line);
  ui.print(service.endpoint);
}
