import { budgetOf } from '../../domain/cost-limit.ts';
import { locationName } from '../../domain/location-name.ts';
import type { ReplicaRecord, ServiceRecord } from '../../domain/records.ts';
import { isAlive } from '../../domain/replica/replica-state.ts';
import { neededSurge, type TaskVersion } from '../../domain/rollout.ts';
import { spotPlacerOf } from '../../domain/spot/markets.ts';
import type { UpdatePolicy } from '../../domain/task.ts';
import { planPlacement } from '../../provision/placement-plan.ts';
import type { DaemonContext } from '../daemon-context.ts';

interface PlannedUpdate {
  readonly next: TaskVersion;
  readonly update: UpdatePolicy;
  readonly replicas: readonly ReplicaRecord[];
}

/**
 * Why the replicas without which an update waits could not be launched now, beside those that live: sentences. Undefined
 * when they could be, as far as is known without a request.
 */
export async function whyNoSurge(
  context: DaemonContext,
  { version, memory }: ServiceRecord,
  { next, update, replicas }: PlannedUpdate,
): Promise<string | undefined> {
  const { task } = next;
  const living = replicas.filter(({ state }) => isAlive(state));
  const needed = neededSurge(update, living.length);
  const limitUsd = task.service?.maxHourlyCost;
  const budget = budgetOf(limitUsd, replicas);
  // The first launch of a version has no known price; the others are priced like the old version.
  for (let launch = 0; launch < needed; launch += 1) budget.allows({ version: launch === 0 ? next.version : version, market: null });
  if (limitUsd !== undefined && budget.refused > 0) return `max_hourly_cost ($${limitUsd}) does not allow them beside the old ones.`;
  if (needed === 0) return undefined;
  const refusals = (memory.placement?.refusals ?? []).filter(({ kind }) => kind !== 'throttled');
  const plan = await planPlacement({
    alternatives: task.resources,
    nodes: task.numNodes,
    providerConfig: task.providerConfig,
    placer: spotPlacerOf(task),
    replicas: needed,
    providers: await context.states(),
    memory: { starts: [], ...memory.placement, refusals },
    occupied: living.flatMap(({ offer }) => offer ?? []),
    clock: context.clock,
    explain: false,
  });
  const placed = plan.offers.reduce((sum, offer) => sum + offer.replicas.length, 0);
  if (placed >= needed) return undefined;
  const refused = plan.offers.filter(({ verdict }) => verdict === 'refused');
  const whys = refused.map((offer) => `${locationName(offer)}: ${offer.why}.`);
  return [...new Set([...plan.notes, ...whys])].join(' ');
}
