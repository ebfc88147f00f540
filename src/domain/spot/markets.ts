import type { Market } from '../placement.ts';
import { planReplicas, type PlannedReplica } from '../plan.ts';
import type { ReplicaRecord } from '../records.ts';
import type { ReplicaPolicy, ResourceAlternatives, SpotPlacer, Task } from '../task.ts';

/** Numbers of replicas by market. */
export interface MarketCounts {
  readonly spot: number;
  readonly onDemand: number;
}

/** Input of the split of a service's replicas. */
interface MarketFacts {
  /** What the load requires. */
  readonly target: number;
  /** The same with overprovisioning. */
  readonly desired: number;
  /** Ready spot replicas of all versions without those that are being reclaimed. */
  readonly readySpot: number;
  /** For the placer `hedge`: what it decides; undefined while no search has seen the zones. */
  readonly hedged?: MarketCounts | undefined;
}

/** The market of a replica. The offer decides for replicas whose launch left the choice to the search. */
export function marketOf({ market, offer }: Pick<ReplicaRecord, 'market' | 'offer'>): Market {
  return market ?? (offer?.spot === false ? 'on-demand' : 'spot');
}

/**
 * How zones for the service's spot machines are chosen. The hedge is the default of a file that has only spot machines
 * and no spot policy; it applies where spot has several zones.
 */
export function spotPlacerOf({ resources, service }: Task): SpotPlacer | undefined {
  const policy = service?.replicaPolicy;
  if (policy === undefined || policy.spotPlacer !== undefined) return policy?.spotPlacer;
  const { dynamicOndemandFallback, baseOndemandFallbackReplicas, numOverprovision } = policy;
  const hasPolicy = dynamicOndemandFallback || baseOndemandFallbackReplicas > 0 || numOverprovision > 0;
  return !hasPolicy && resources.choices.every(({ useSpot }) => useSpot) ? 'hedge' : undefined;
}

/**
 * How many living replicas of each market a service shall have; undefined: the search may choose the market of each
 * replica. Together they may be more than desired: on-demand replicas serve until spot replicas are ready.
 */
export function wantedMarkets(task: Task, facts: MarketFacts): MarketCounts | undefined {
  const { resources, service } = task;
  const policy = service?.replicaPolicy;
  if (policy === undefined || !resources.choices.some(({ useSpot }) => useSpot)) return undefined;
  if (policy.spotPlacer === 'hedge' || (facts.hedged !== undefined && spotPlacerOf(task) === 'hedge')) return withBase(policy, facts);
  const hasFallback = policy.dynamicOndemandFallback || policy.baseOndemandFallbackReplicas > 0;
  return hasFallback || resources.choices.every(({ useSpot }) => useSpot) ? fallbackMarkets(policy, facts) : undefined;
}

/** The hedge's split for the replicas that are not always on demand. */
function withBase(policy: ReplicaPolicy, facts: MarketFacts): MarketCounts {
  const { hedged, target } = facts;
  if (hedged === undefined) return fallbackMarkets({ ...policy, dynamicOndemandFallback: true }, facts);
  const base = Math.min(policy.baseOndemandFallbackReplicas, target);
  return { spot: hedged.spot, onDemand: hedged.onDemand + base };
}

/** The numbers while all spot replicas are ready, and the on-demand replicas while none is. */
export interface MarketRange extends MarketCounts {
  readonly mostOnDemand: number;
  /** Whether on-demand replicas are used only where spot has several zones. */
  readonly needsZones: boolean;
}

/** The range of a service with `target` replicas; undefined: the search may choose the market of each replica. */
export function marketRange(task: Task, target: number): MarketRange | undefined {
  const desired = target + (task.service?.replicaPolicy.numOverprovision ?? 0);
  const usual = wantedMarkets(task, { target, desired, readySpot: desired });
  const least = wantedMarkets(task, { target, desired, readySpot: 0 });
  const needsZones = task.service?.replicaPolicy.spotPlacer === undefined && spotPlacerOf(task) === 'hedge';
  return usual && { ...usual, mostOnDemand: needsZones ? target : Math.max(usual.onDemand, least?.onDemand ?? 0), needsZones };
}

/** The split of SkyServe's autoscaler with fallback. Overprovisioned replicas have no on-demand fallback. */
function fallbackMarkets(
  { baseOndemandFallbackReplicas, dynamicOndemandFallback }: ReplicaPolicy,
  { target, desired, readySpot }: MarketFacts,
): MarketCounts {
  // A base above the target stops SkyServe's autoscaler with an error.
  const base = Math.min(baseOndemandFallbackReplicas, target);
  const spot = desired - base;
  const fallback = dynamicOndemandFallback ? Math.max(0, spot - readySpot) : 0;
  return { spot, onDemand: Math.min(target, base + fallback) };
}

/** The alternatives for a launch in a market. A file with spot machines only gets the same machines on demand. */
export function alternativesFor(resources: ResourceAlternatives, market: Market | null): ResourceAlternatives {
  if (market === null) return resources;
  const useSpot = market === 'spot';
  const written = resources.choices.filter((choice) => choice.useSpot === useSpot);
  return { ...resources, choices: written.length > 0 ? written : resources.choices.map((choice) => ({ ...choice, useSpot })) };
}

/** Markets of the next `count` launches: first on demand, as those machines are likely to come. */
export function lackingMarkets(living: readonly PlannedReplica[], wanted: MarketCounts, count: number): readonly Market[] {
  const onDemand = Math.min(count, Math.max(0, wanted.onDemand - inMarket(living, 'on-demand').length));
  return Array.from({ length: count }, (_, index) => (index < onDemand ? 'on-demand' : 'spot'));
}

type MarketAction = { readonly type: 'launch'; readonly market: Market } | { readonly type: 'stop'; readonly replicaId: number };

/**
 * Actions that bring the living replicas of one version to the wanted numbers, with at most `most` of them. No launch
 * raises the number of on-demand ones above `mostOnDemand`. Surplus ones are stopped in the order of `planReplicas`,
 * on-demand ones first: they cost more. A ready one is stopped only while more than `atLeast` are ready: the replicas of
 * the other market may still be starting.
 */
export function planMarkets(
  living: readonly PlannedReplica[],
  wanted: MarketCounts,
  { most, mostOnDemand, atLeast }: { readonly most: number; readonly mostOnDemand: number; readonly atLeast: number },
): readonly MarketAction[] {
  const stopped = new Set<number>();
  let spareReady = living.filter(isReady).length - atLeast;
  const surplus = [...planReplicas(inMarket(living, 'on-demand'), wanted.onDemand), ...planReplicas(inMarket(living, 'spot'), wanted.spot)];
  for (const action of surplus) {
    if (action.type === 'launch') continue;
    if (living.some((replica) => replica.id === action.replicaId && isReady(replica))) {
      if (spareReady <= 0) continue;
      spareReady -= 1;
    }
    stopped.add(action.replicaId);
  }
  const fitting = Math.min(most, living.length - stopped.size);
  for (const action of planReplicas(without(living, stopped), fitting)) if (action.type === 'stop') stopped.add(action.replicaId);
  const left = without(living, stopped);
  const missing = (market: Market, count: number): number => Math.max(0, count - inMarket(left, market).length);
  const allowed = { ...wanted, onDemand: Math.min(wanted.onDemand, mostOnDemand) };
  const launches = Math.min(Math.max(0, most - left.length), missing('on-demand', allowed.onDemand) + missing('spot', wanted.spot));
  return [
    ...[...stopped].map((replicaId) => ({ type: 'stop', replicaId }) as const),
    ...lackingMarkets(left, allowed, launches).map((market) => ({ type: 'launch', market }) as const),
  ];
}

const isReady = ({ state }: PlannedReplica): boolean => state === 'READY';
const inMarket = (replicas: readonly PlannedReplica[], market: Market): readonly PlannedReplica[] =>
  replicas.filter((replica) => (replica.market ?? 'spot') === market);
const without = (replicas: readonly PlannedReplica[], ids: ReadonlySet<number>): readonly PlannedReplica[] =>
  replicas.filter(({ id }) => !ids.has(id));
