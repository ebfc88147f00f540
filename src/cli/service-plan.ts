import type { Task } from '../domain/task.ts';
import type { PlacementPlan } from '../provision/placement-plan.ts';
import type { CommandContext } from './context.ts';

/** Where the replicas that a service has at least would be put, as seen from this machine; nothing is started. */
export async function planService(task: Task, explain: boolean, { places, clock, signal }: CommandContext): Promise<PlacementPlan> {
  const { planPlacement } = await import('../provision/placement-plan.ts');
  const policy = task.service?.replicaPolicy;
  // A service that begins without replicas is planned for its first one.
  const replicas = Math.max(1, (policy?.minReplicas ?? 1) + (policy?.numOverprovision ?? 0));
  const opened = await places();
  return planPlacement({ alternatives: task.resources, replicas, places: await opened.states(), clock, explain, signal });
}

/** Throws SVC_NO_PLACE or SVC_NO_GPU, with what each place says, when there is nothing to choose from. */
export async function refuseEmpty(plan: PlacementPlan, task: Task): Promise<void> {
  const { hasChoice } = await import('../provision/placement-plan.ts');
  if (hasChoice(plan)) return;
  const { nothingOffered } = await import('../provision/offers.ts');
  throw nothingOffered(task.resources, plan.notes);
}
