import type { ApiClient } from '../../api/client.ts';
import type { EventView, RouteReply, ServiceView } from '../../api/contract.ts';
import { countReplicas } from '../../domain/plan.ts';
import { hourlyPrice } from '../../domain/price.ts';
import { mostSurge, shareOf } from '../../domain/rollout.ts';
import { updateModes, type UpdateMode, type UpdatePolicy } from '../../domain/task.ts';
import type { Clock } from '../../shared/clock.ts';
import { didYouMean } from '../../shared/did-you-mean.ts';
import { SvcError } from '../../shared/errors.ts';
import { parseDuration } from '../../shared/units.ts';
import type { CommandContext } from '../command.ts';
import { safeLines } from '../listing/display-text.ts';
import { formatAge, formatDuration } from '../listing/format-values.ts';
import { renderTable } from '../listing/table.ts';
import { readServiceFile, type TaskArgs } from '../task-source.ts';
import { followService, type FollowGoal } from './follow-service.ts';
import { apiFor } from './one-service.ts';

interface ConfirmedArgs {
  readonly name: string;
  readonly wait: boolean | undefined;
  readonly yes: boolean;
  readonly json: boolean;
}

interface UpdateArgs extends TaskArgs, ConfirmedArgs {
  readonly file: string;
  readonly mode: string | undefined;
  readonly steps: string | undefined;
  readonly bake: string | undefined;
  readonly surge: string | undefined;
  readonly maxUnavailable: number | undefined;
}

type UpdatePlan = RouteReply<'updateService'>;

/** Timeout, ms: copying a large workdir takes minutes. */
const updateTimeoutMs = 600_000;

/** `svc serve update`: shows what a changed file changes, asks, and has the controller replace the replicas. */
export async function serveUpdate(args: UpdateArgs, context: CommandContext): Promise<void> {
  const { connection } = context;
  const policy = readPolicyChange(args);
  const { task, body: given } = await readServiceFile(args.file, args, context);
  const api = await apiFor(args.name, context);
  const upload = await connection.bring(task, given.file, () => undefined);
  const body = {
    ...given,
    ...(upload !== undefined && { upload }),
    ...(Object.keys(policy).length > 0 && { policy }),
  };
  await change(args, context, api, (basis) =>
    api.call('updateService', { params: { name: args.name }, body: { ...body, ...basis }, timeoutMs: updateTimeoutMs }),
  );
}

interface RollbackArgs extends ConfirmedArgs {
  readonly to: number | undefined;
}

/** `svc serve rollback`: the same with an earlier version instead of a file. */
export async function serveRollback(args: RollbackArgs, context: CommandContext): Promise<void> {
  const api = await apiFor(args.name, context);
  const to = args.to === undefined ? {} : { to: args.to };
  await change(args, context, api, (basis) => api.call('rollbackService', { params: { name: args.name }, body: { ...to, ...basis } }));
}

/** More steps than anyone follows. */
const mostSteps = 20;

/** The settings of the update that the command line gives. */
function readPolicyChange({ mode, surge, maxUnavailable, steps, bake }: UpdateArgs): Partial<Omit<UpdatePolicy, 'session'>> {
  return {
    ...(mode !== undefined && { mode: readMode(mode) }),
    ...(surge !== undefined && { surge: readSurge(surge) }),
    ...(maxUnavailable !== undefined && { maxUnavailable }),
    ...(steps !== undefined && { steps: readSteps(steps) }),
    ...(bake !== undefined && { bakeSeconds: readBake(bake) }),
  };
}

/** SkyPilot's words are accepted in its spelling and with a dash. */
function readMode(text: string): UpdateMode {
  const word = text.toLowerCase().replaceAll('-', '_');
  const mode = updateModes.find((one) => one === word);
  if (mode !== undefined) return mode;
  const similar = didYouMean(word, updateModes);
  throw new SvcError('SVC_USAGE', `--mode ${text} is none of ${updateModes.join(', ')}.`, {
    ...(similar !== undefined && { hint: `Did you mean ${similar}?` }),
  });
}

function readSteps(text: string): readonly number[] {
  const steps = text.split(',').map((part) => (/^\s*\d{1,2}%?\s*$/.test(part) ? Number.parseInt(part, 10) : 0));
  if (steps.length <= mostSteps && steps.every((step, index) => step > (steps[index - 1] ?? 0))) return steps;
  throw new SvcError('SVC_USAGE', `--steps ${text} are not shares from 1 to 99 percent, from small to large.`, {
    hint: 'Write for instance: --steps 5,25,50. The rest follows after the last one.',
  });
}

function readBake(text: string): number {
  const seconds = parseDuration(text, 's');
  if (seconds !== undefined) return seconds;
  throw new SvcError('SVC_USAGE', `--bake ${text} is not a duration.`, { hint: 'Write seconds, or for instance 90s or 10m.' });
}

function readSurge(text: string): UpdatePolicy['surge'] {
  const surge = /^\d{1,5}$/.test(text) ? Number(text) : shareOf(text);
  if (surge === undefined) throw new SvcError('SVC_USAGE', `--surge ${text} is neither a number of replicas nor a share such as 25%.`);
  return surge;
}

/** Shows the plan, asks, makes the change, and follows it on a terminal. */
async function change(
  { name, yes, wait, json }: ConfirmedArgs,
  context: CommandContext,
  api: ApiClient,
  request: (basis: { readonly dryRun: boolean; readonly from?: number }) => Promise<UpdatePlan>,
): Promise<void> {
  const { ui } = context;
  const service = await api.call('getService', { params: { name } });
  const planned = await request({ dryRun: true });
  if (planned.version === null) {
    if (json) ui.json(planned);
    else ui.say(`Service '${name}' is at this version already (${planned.from}); nothing changes.`);
    return;
  }
  if (!json) for (const line of planLines(planned, service)) ui.quote(line);
  if (!(await ui.confirm(`Update service '${name}' to version ${planned.version}?`, yes, true)))
    throw new SvcError('SVC_ABORTED', 'Nothing was changed.');
  const after = await lastEventId(api, name);
  const done = await request({ dryRun: false, from: planned.from });
  if (!json) ui.say(`Service '${name}' is updating to version ${done.version}.`);
  if (wait ?? ui.outIsTerminal) {
    const followed = await followService(name, untilUpdated(done.version ?? 0, context.clock), context, { after });
    if (followed === undefined) ui.say(`The update goes on. To see it: svc serve status ${name}`);
    else if (!json) ui.say(doneLine(followed, done));
  } else if (!json) ui.say(`  See it      svc serve status ${name}`);
  if (json) ui.json(done);
  else ui.say(`  Go back     svc serve rollback ${name}`);
}

function doneLine({ name, replicasReady, targetReplicas }: ServiceView, { version }: UpdatePlan): string {
  if (targetReplicas === 0)
    return `Service '${name}' is at version ${version}; its first replica starts with the next request, and none has tested it.`;
  return `Service '${name}' runs version ${version} (${countReplicas(replicasReady)} ready).`;
}

function planLines(plan: UpdatePlan, service: ServiceView): readonly string[] {
  const { version, from, changes } = plan;
  const title = `Version ${version} of '${service.name}' differs from version ${from}:`;
  const shown = changes.length === 0 ? ['  (only in how the update is made)'] : changes.map(changeLine);
  return [title, ...shown, replacementLine(plan, service), ...capacityLines(plan)];
}

/** Keeps the indentation of the file. */
function changeLine(line: string): string {
  return `  ${safeLines(line).join(' ')}`;
}

function replacementLine({ replaced, keepsReplicas, update }: UpdatePlan, { targetReplicas, replicas }: ServiceView): string {
  if (replaced === 0) {
    return keepsReplicas
      ? 'The replicas stay: nothing changes for their program.'
      : 'No replica lives that would be replaced; new ones have the new version.';
  }
  const surge = mostSurge(update, targetReplicas);
  const fewer = update.maxUnavailable === 0 ? 'none fewer than now ready' : `up to ${update.maxUnavailable} fewer ready`;
  const price = Math.max(0, ...replicas.flatMap(({ endedAt, hourlyUsd }) => (endedAt === null && hourlyUsd !== null ? [hourlyUsd] : [])));
  const cost = surge * price === 0 ? '' : `, which cost about ${hourlyPrice(surge * price)}`;
  const how = `${countReplicas(replaced)} will be replaced, with up to ${countReplicas(surge, 'more')} meanwhile${cost}, and ${fewer}.`;
  return [how, ...movesOf(update)].join(' ');
}

/** That the update may have to wait for machines, and how it need not. */
function capacityLines({ noCapacity, update }: UpdatePlan): readonly string[] {
  if (noCapacity === undefined) return [];
  const flags = `${update.mode === 'rolling' ? '' : '--mode rolling '}--max-unavailable 1`;
  return [
    `The replicas that the update must add have no capacity now: ${noCapacity}`,
    `It waits for capacity. To end an old replica first instead: svc serve update with ${flags}`,
  ];
}

/** How requests move, unless replica by replica. */
function movesOf({ mode, steps, bakeSeconds }: UpdatePlan['update']): readonly string[] {
  const bake = formatDuration(bakeSeconds);
  if (mode === 'blue_green') return [`All requests move at once when every new replica is ready; the old ones stay ${bake} more.`];
  if (mode === 'canary')
    return [`The new version gets ${steps.join(' %, ')} % of the requests, each for ${bake}, then all. A worse one is rolled back.`];
  return [];
}

/** So that only events after the change are shown. */
async function lastEventId(api: ApiClient, name: string): Promise<number> {
  let last = 0;
  for await (const { id } of api.lines('serviceEvents', { params: { name } })) last = id;
  return last;
}

/**
 * Longest wait for the balancer after the replicas, ms. A hand-over takes seconds; a balancer that needs longer fails
 * again and again.
 */
const handOverMs = 120_000;

function untilUpdated(version: number, clock: Clock): FollowGoal {
  let replacedAt: number | undefined;
  return {
    text: 'Waiting for the new version to take over',
    isReached(service) {
      if (service.version !== version)
        throw new SvcError('SVC_UPDATE_CONFLICT', `Another update of '${service.name}' took the place of version ${version}.`);
      if (service.update?.stopped === true)
        throw new SvcError('SVC_SERVICE_FAILED', service.reason ?? `The update to version ${version} stopped.`, {
          hint: `Go back to the version before: svc serve rollback ${service.name}. Or correct the file and update again.`,
        });
      // An update that keeps the replicas ends at once; its settings are in force when the balancer has handed over.
      if (service.update !== undefined) return false;
      replacedAt ??= clock.monotonic();
      if (service.handingOver !== true) return true;
      if (clock.monotonic() - replacedAt < handOverMs) return false;
      throw new SvcError(
        'SVC_NOT_HANDED_OVER',
        `The replicas of '${service.name}' have version ${version}, but its balancer has not handed over for ${handOverMs / 1_000} s and serves with the settings before it.`,
        { hint: `The controller keeps trying. To see why: svc serve logs ${service.name} --load-balancer` },
      );
    },
    mayReach: ({ cause }: EventView) => cause === 'updated' || cause === 'update-stopped' || cause === 'update',
  };
}

interface PauseArgs {
  readonly name: string;
  readonly json: boolean;
}

/** `svc serve pause` and `resume`: hold an update, or let it go on. */
export async function servePause({ name, json }: PauseArgs, context: CommandContext, paused: boolean): Promise<void> {
  const { ui } = context;
  const reply = await (await apiFor(name, context)).call('pauseUpdate', { params: { name }, body: { paused } });
  if (json) return ui.json(reply);
  const state = paused ? 'is held' : 'goes on';
  ui.say(`The update of '${name}' to version ${reply.version} ${state}${reply.changed ? '' : ' already'}.`);
  ui.say(paused ? `  Go on       svc serve resume ${name}` : `  See it      svc serve status ${name}`);
}

interface VersionsArgs {
  readonly name: string;
  readonly json: boolean;
}

/** `svc serve versions`: lists the versions of a service, and what each one changed. */
export async function serveVersions({ name, json }: VersionsArgs, context: CommandContext): Promise<void> {
  const { ui, clock } = context;
  const reply = await (await apiFor(name, context)).call('listVersions', { params: { name } });
  if (json) return ui.json(reply);
  const rows = reply.versions.toReversed();
  const lines = renderTable(
    [
      { title: 'VERSION', value: ({ version }) => String(version) },
      { title: 'CREATED', value: ({ createdAt }) => formatAge(createdAt, clock.now()) },
      { title: 'HASH', value: ({ hash }) => hash, dropOrder: 1 },
      { title: 'REPLICAS', value: ({ replicas, replicasReady }) => (replicas === 0 ? '-' : `${replicasReady}/${replicas}`) },
      { title: 'STATE', value: ({ isCurrent, replicas }) => (isCurrent ? 'current' : replicas > 0 ? 'serving' : 'kept') },
    ],
    rows,
    ui.outWidth,
  );
  for (const line of lines) ui.print(line);
  for (const { version, changes } of rows.filter((one) => one.changes.length > 0)) {
    ui.print('');
    ui.print(ui.paint('strong', `Version ${version} changed`));
    for (const line of changes) ui.print(changeLine(line));
  }
}
