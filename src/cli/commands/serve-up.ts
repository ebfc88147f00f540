import type { ServiceView } from '../../api/contract.ts';
import { hourlyPrice } from '../../domain/price.ts';
import type { Task } from '../../domain/task.ts';
import { SvcError } from '../../shared/errors.ts';
import { checkName } from '../name-patterns.ts';
import type { CommandContext } from '../command.ts';
import { oneLine } from '../listing/display-text.ts';
import { type ServiceFile, type TaskArgs, readServiceFile } from '../task-source.ts';
import { renderController, renderPlan } from '../listing/plan-listing.ts';
import { planService, refuseEmpty } from './serve-plan.ts';
import type { Ui } from '../ui.ts';
import { policyAt } from '../../domain/replica-schedule.ts';
import { followService, type FollowGoal } from './follow-service.ts';

interface UpArgs extends TaskArgs {
  readonly file: string;
  readonly name: string | undefined;
  readonly expose: boolean;
  readonly endpointPort: number | undefined;
  readonly wait: boolean | undefined;
  readonly yes: boolean;
  readonly json: boolean;
}

const exposedNote = ' (exposed: other machines reach it)';

/** Timeout, ms: copying a large workdir takes minutes. */
const createTimeoutMs = 600_000;

/** `svc serve up`: checks the file here, has the controller deploy the service, and follows it on a terminal. */
export async function serveUp(args: UpArgs, context: CommandContext): Promise<void> {
  const { ui } = context;
  if (args.name !== undefined) checkName(args.name);
  const { task, body, summary } = await readServiceFile(args.file, args, context);
  await context.connection.preflight();
  if (!(await agreesToCost(task, args.yes, context))) throw new SvcError('SVC_ABORTED', 'Nothing was deployed.');

  const created = await create(args, { task, body }, context);
  if (created === undefined) return;
  const { name } = created;
  const startsAtZero = task.service !== undefined && policyAt(task.service.replicaPolicy, context.clock.now()).minReplicas === 0;
  // Without a request, a first replica never comes.
  const follow = !startsAtZero && (args.wait ?? ui.outIsTerminal);
  if (!args.json) {
    // Printed only after the controller has accepted the service: a refused one needs no summary.
    for (const line of summary) ui.say(line);
    ui.say(`Service '${name}' is coming up at ${created.endpoint}${created.exposed ? exposedNote : ''}`);
    if (startsAtZero) ui.say('It has no replica yet (min_replicas: 0). The first request starts one, and waits for it.');
  }
  const service = follow ? await followService(name, untilReady, context) : created;
  if (service === undefined) {
    ui.say(`Service '${name}' goes on coming up. To take it down: svc serve down ${name}`);
    return;
  }
  if (args.json) ui.json(service);
  else if (ui.outIsTerminal) {
    showOnTerminal(service, follow, ui);
    await mentionReboot(context);
  } else showInPipe(service, follow, ui);
}

/** Shows the price and asks for confirmation, unless the service is free. */
async function agreesToCost(task: Task, yes: boolean, context: CommandContext): Promise<boolean> {
  const { ui, connection } = context;
  const plan = await planService(task, false, context);
  await refuseEmpty(plan, task, context);
  const controller = await connection.plan(task.resources);
  const added = plan.hourlyUsd + (controller?.isNew === true ? controller.hourlyUsd : 0);
  // Shown even without extra cost: credentials may leave this machine, or the controller differ from the configuration.
  if (controller !== undefined && (added > 0 || controller.isNew || controller.note !== null)) {
    for (const line of renderController(controller)) ui.say(line);
  }
  if (added === 0) {
    // The chosen locations cost nothing. The refusals of preferred locations are shown all the same.
    for (const { provider, region, verdict, why } of plan.offers)
      if (verdict === 'refused') ui.say(`Not at ${provider}/${region}: ${oneLine(why)}`);
    return true;
  }
  for (const line of renderPlan(plan, { all: false, width: ui.sayWidth })) ui.quote(line);
  return ui.confirm(`Put it up for about ${hourlyPrice(added)}?`, yes, true);
}

/** The new service; undefined when interrupted meanwhile. */
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
    const { service, warning } = await api.call('createService', { body, timeoutMs: createTimeoutMs });
    if (warning !== undefined) ui.say(`Warning: ${warning}`);
    return service;
  } catch (error) {
    if (!signal.aborted) throw error;
    progress.stop();
    ui.say('Interrupted; to see whether the service was deployed: svc serve status');
    return undefined;
  } finally {
    progress.stop();
  }
}

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

/** The user learns once that a local controller does not start by itself after a reboot. */
async function mentionReboot(context: CommandContext): Promise<void> {
  const { connection, ui } = context;
  if ((await connection.remoteController()) !== undefined) return;
  const { bootDeps, mentionsBoot } = await import('../boot/boot-entries.ts');
  if (!mentionsBoot(bootDeps(context))) return;
  ui.say('');
  ui.say('After a reboot, the next svc command starts the service again. To have that done at boot: svc controller install');
}

/** A program that reads the result needs only the endpoint. The text beside it is for people. */
function showInPipe(service: ServiceView, followed: boolean, ui: Ui): void {
  if (followed) ui.say(`Service '${service.name}' is ready.`);
  for (const line of nextSteps(service)) ui.say(line);
  ui.print(service.endpoint);
}

/** The service cannot become ready: nothing launches replicas. In other states failed replicas are replaced. */
const failedStates: readonly string[] = ['FAILED', 'CONTROLLER_FAILED', 'FAILED_CLEANUP'];

const untilReady: FollowGoal = {
  text: 'Waiting for the first replica to be ready',
  isReached(service) {
    if (service.replicasReady > 0) return true;
    if (failedStates.includes(service.status)) throw failure(service);
    return false;
  },
  mayReach: ({ to, replicaId }) => to === 'READY' || (replicaId === null && failedStates.includes(to ?? '')),
};

function failure(service: ServiceView): SvcError {
  // The service's reason names a replica that may still be ending; the hint must name the same one.
  const named = /\bsvc serve logs \S+ (\d+)/.exec(service.reason ?? '')?.[1];
  const failed = service.replicas.findLast(({ id, status }) => (named === undefined ? status.startsWith('FAILED') : String(id) === named));
  // The service's own reason already names the replica.
  const quoted = failed?.reason === null || failed === undefined ? 'its replicas keep failing' : `replica ${failed.id}: ${failed.reason}`;
  const reason = service.reason ?? quoted;
  const log = failed === undefined ? '--controller' : String(failed.id);
  return new SvcError('SVC_SERVICE_FAILED', `Service '${service.name}' failed: ${reason}`, {
    hint: `Read the log: svc serve logs ${service.name} ${log}. Then take it down: svc serve down ${service.name}`,
  });
}
