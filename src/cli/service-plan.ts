import type { Task } from '../domain/task.ts';
import type { MachineSpec } from '../providers/provider.ts';
import type { PlacementPlan } from '../provision/placement-plan.ts';
import { SvcError } from '../shared/errors.ts';
import type { HomePaths } from '../shared/paths.ts';
import type { CommandContext } from './context.ts';

/** Where the replicas that a service has at least would be put, as seen from this machine; nothing is started. */
export async function planService(task: Task, explain: boolean, { places, clock, signal }: CommandContext): Promise<PlacementPlan> {
  const [{ planPlacement }, { replicaMachineSpec }] = await Promise.all([
    import('../provision/placement-plan.ts'),
    import('../provision/machine-spec.ts'),
  ]);
  const policy = task.service?.replicaPolicy;
  // A service that begins without replicas is planned for its first one.
  const replicas = Math.max(1, (policy?.minReplicas ?? 1) + (policy?.numOverprovision ?? 0));
  const opened = await places();
  const { resources: alternatives, numNodes: nodes, placeConfig } = task;
  const spec = ({ alternative }: { readonly alternative: number }): MachineSpec => ({
    ...replicaMachineSpec(task, alternatives.choices[alternative]),
    tags: {},
    clients: [],
  });
  return planPlacement({ alternatives, nodes, placeConfig, replicas, places: await opened.states(), clock, explain, spec, signal });
}

/** Throws SVC_NO_PLACE, SVC_NO_GPU or SVC_REFUSED_THERE, with what each place says, when there is nothing to choose from. */
export async function refuseEmpty(plan: PlacementPlan, task: Task, { places, paths }: CommandContext): Promise<void> {
  const { hasChoice } = await import('../provision/placement-plan.ts');
  if (hasChoice(plan)) return;
  const refused = plan.offers.some(({ verdict }) => verdict === 'refused');
  if (refused) throw allRefuse(plan.notes);
  const { misnamed, nothingOffered } = await import('../provision/offers.ts');
  if (plan.isMisnamed === true) throw misnamed(plan.notes);
  const opened = await places();
  throw nothingOffered(task.resources, plan.notes, { places: await opened.states(), tables: await acceleratorsOfTables(paths) });
}

/** Names of accelerators in tables of prices, those of clouds without a place among them. A table that cannot be read has been told of already. */
async function acceleratorsOfTables({ catalogDir }: HomePaths): Promise<readonly string[]> {
  const { PriceTables } = await import('../catalog/price-tables.ts');
  const tables = new PriceTables(catalogDir);
  const read = (await tables.clouds()).map((cloud) => tables.table(cloud).catch(() => undefined));
  const types = (await Promise.all(read)).flatMap((table) => table?.types ?? []);
  return [...new Set(types.flatMap(({ accelerator }) => accelerator?.name ?? []))];
}

/** There are machines, and no place gives one for this task. */
function allRefuse(reasons: readonly string[]): SvcError {
  const lines = reasons.map((reason) => `  ${reason}`).join('\n');
  return new SvcError('SVC_REFUSED_THERE', `No place takes a replica of this task.\n${lines}`, {
    hint: 'Mend what is named, then run the command again.',
  });
}
