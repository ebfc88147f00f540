import type { CommandContext } from '../context.ts';
import { renderController, renderPlan } from '../listing/plan-listing.ts';
import { planService, refuseEmpty } from '../service-plan.ts';
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
