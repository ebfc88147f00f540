import { highestPrice } from '../../domain/cost-limit.ts';
import { locationName } from '../../domain/location-name.ts';
import type { ReplicaRecord, ServiceRecord } from '../../domain/records.ts';
import { isAlive } from '../../domain/replica/replica-state.ts';
import { hourlyPrice } from '../../domain/price.ts';
import { neededSurge, type TaskVersion } from '../../domain/rollout.ts';
import { spotPlacerOf } from '../../domain/spot/markets.ts';
import type { UpdatePolicy } from '../../domain/task.ts';
import { planPlacement, type PlannedOffer } from '../../provision/placement-plan.ts';
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
  { memory }: ServiceRecord,
  { next, update, replicas }: PlannedUpdate,
): Promise<string | undefined> {
  const { task } = next;
  const living = replicas.filter(({ state }) => isAlive(state));
  const needed = neededSurge(update, living.length);
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
  if (placed >= needed) return whyTooDear(task.service?.maxHourlyCost, replicas, { needed, offers: plan.offers });
  const refused = plan.offers.filter(({ verdict }) => verdict === 'refused');
  const whys = refused.map((offer) => `${locationName(offer)}: ${offer.why}.`);
  return [...new Set([...plan.notes, ...whys])].join(' ');
}

/** Whether the price limit forbids the cheapest machines that a search could choose now, as the search itself would. */
function whyTooDear(
  limitUsd: number | undefined,
  replicas: readonly ReplicaRecord[],
  { needed, offers }: { readonly needed: number; readonly offers: readonly PlannedOffer[] },
): string | undefined {
  const leftUsd = highestPrice(limitUsd, replicas, '', () => 0);
  const usable = offers.filter(({ verdict }) => verdict === 'chosen' || verdict === 'possible');
  const usd = needed * Math.min(...usable.map(({ hourlyUsd }) => hourlyUsd));
  if (limitUsd === undefined || leftUsd === undefined || usd <= leftUsd) return undefined;
  return `max_hourly_cost ($${limitUsd}) does not allow them beside the old ones: the cheapest now cost ${hourlyPrice(usd)}.`;
}
