import { marketRange, spotPlacerOf } from '../../domain/spot/markets.ts';
import type { ResourceAlternatives, Task } from '../../domain/task.ts';
import type { MachineSpec } from '../../providers/provider.ts';
import type { PlacementPlan, PlanRequest } from '../../provision/placement-plan.ts';
import { SvcError } from '../../shared/errors.ts';
import type { HomePaths } from '../../shared/paths.ts';
import type { CommandContext } from '../command.ts';
import { renderController, renderPlan } from '../listing/plan-listing.ts';
import { readServiceFile, type TaskArgs } from '../task-source.ts';

interface PlanArgs extends TaskArgs {
  readonly file: string;
  readonly all: boolean;
  readonly json: boolean;
}

/** `svc serve plan`: shows where a service would be deployed, at which cost, and why. Deploys nothing. */
export async function servePlan(args: PlanArgs, context: CommandContext): Promise<void> {
  const { ui, connection } = context;
  const { task } = await readServiceFile(args.file, args, context);
  await connection.preflight();
  const plan = await planService(task, args.all, context);
  const lines = renderPlan(plan, { all: args.all, width: ui.outWidth });
  // With --all, the listing itself shows why there is no choice.
  if (!args.all) await refuseEmpty(plan, task, context);
  if (!args.json) for (const line of lines) ui.print(line);
  await refuseEmpty(plan, task, context);
  const controller = await connection.plan(task.resources);
  if (args.json) ui.json({ ...plan, controller: controller ?? null });
  if (!args.json && controller !== undefined) for (const line of renderController(controller)) ui.print(ui.asTyped(line));
  if (!args.json && task.service?.replicaPolicy.minReplicas === 0) {
    ui.print('With min_replicas: 0 it costs nothing until a request comes; the plan is for the first replica.');
  }
}

/** The locations of a service's minimum number of replicas, as seen from this machine. Starts nothing. */
export async function planService(task: Task, explain: boolean, { providers, clock, signal, ui }: CommandContext): Promise<PlacementPlan> {
  const [{ planPlacement, hasChoice }, { planByMarket }, { taskMachineSpec }, { askProviders, whyOut }] = await Promise.all([
    import('../../provision/placement-plan.ts'),
    import('../../provision/market-plan.ts'),
    import('../../provision/machine-spec.ts'),
    import('../../provision/providers.ts'),
  ]);
  const policy = task.service?.replicaPolicy;
  // A service with no initial replicas is planned for its first one.
  const target = Math.max(1, policy?.minReplicas ?? 1);
  const markets = marketRange(task, target);
  const opened = await providers();
  const { resources: alternatives, numNodes: nodes, providerConfig } = task;
  const specOf =
    ({ choices }: ResourceAlternatives) =>
    ({ alternative }: { readonly alternative: number }): MachineSpec => ({
      ...taskMachineSpec(task, choices[alternative]),
      tags: {},
      clients: [],
    });
  const placer = spotPlacerOf(task);
  const request = { alternatives, nodes, providerConfig, placer, clock, explain, signal } satisfies Partial<PlanRequest>;
  const replicas = target + (policy?.numOverprovision ?? 0);
  const progress = ui.waiting();
  progress.now('Checking which providers can be used and what they offer');
  try {
    const { providers: states, answer: plan } = await askProviders(
      () => opened.states(),
      (some) =>
        markets === undefined
          ? planPlacement({ ...request, replicas, spec: specOf(alternatives), providers: some })
          : planByMarket({ ...request, spec: specOf, providers: some }, markets),
      hasChoice,
      { onWait: (text) => progress.now(text), signal },
    );
    if (!hasChoice(plan)) return plan;
    const isAsked = (name: string): boolean => alternatives.choices.some(({ cloud }) => cloud === undefined || cloud === name);
    for (const state of states)
      if (state.provider === undefined && state.check.slow !== undefined && isAsked(state.name))
        progress.line(`Going on without ${state.name}: it ${whyOut(state)}`);
    return plan;
  } finally {
    progress.stop();
  }
}

/** Throws SVC_NO_PLACE, SVC_NO_GPU or SVC_REFUSED_THERE with each provider's answer when no offer can be chosen. */
export async function refuseEmpty(plan: PlacementPlan, task: Task, { providers, paths }: CommandContext): Promise<void> {
  const { hasChoice } = await import('../../provision/placement-plan.ts');
  if (hasChoice(plan)) return;
  const refused = plan.offers.some(({ verdict }) => verdict === 'refused');
  if (refused) throw allRefuse(plan.notes);
  const { misnamed, nothingOffered } = await import('../../provision/offers.ts');
  if (plan.isMisnamed === true) throw misnamed(plan.notes);
  const opened = await providers();
  throw nothingOffered(task.resources, plan.notes, { providers: await opened.states(), tables: await acceleratorsOfTables(paths) });
}

/** From all price tables, also those of clouds without a provider. Problems with a table are already reported. */
async function acceleratorsOfTables({ catalogDir }: HomePaths): Promise<readonly string[]> {
  const { PriceTables } = await import('../../catalog/price-tables.ts');
  const tables = new PriceTables(catalogDir);
  const read = (await tables.clouds()).map((cloud) => tables.table(cloud).catch(() => undefined));
  const types = (await Promise.all(read)).flatMap((table) => table?.types ?? []);
  return [...new Set(types.flatMap(({ accelerator }) => accelerator?.name ?? []))];
}

/** The error when offers exist, but every provider refuses this task. */
function allRefuse(reasons: readonly string[]): SvcError {
  const lines = reasons.map((reason) => `  ${reason}`).join('\n');
  return new SvcError('SVC_REFUSED_THERE', `No provider accepts a replica of this task.\n${lines}`, {
    hint: 'Correct what is named, then run the command again.',
  });
}
