import type { World } from '../decision.ts';
import type { ReplicaRecord } from '../records.ts';
import { isAlive } from '../replica/replica-state.ts';
import { hedgeMarkets } from './hedge.ts';
import { hedgeFactsOf } from './hedged-service.ts';
import { searchOf } from './known-markets.ts';
import { marketOf, spotPlacerOf, wantedMarkets, type MarketCounts } from './markets.ts';

interface SplitFacts {
  /** The replicas that count: without those that are interrupted or silent, or moved. */
  readonly remaining: readonly ReplicaRecord[];
  /** Replicas that serve until their replacements are ready; see `replicasToMove`. */
  readonly moved: readonly ReplicaRecord[];
  /** Whether each version needs all its replicas: spot replicas of another one serve nothing for it. */
  readonly isApart: boolean;
  /** What the load requires. */
  readonly target: number;
  /** The same with overprovisioning. */
  readonly desired: number;
}

/** Wanted replicas by market, for each version whose file does not leave the market to the search. */
export function splitByMarket(world: World, { remaining, moved, isApart, ...numbers }: SplitFacts): ReadonlyMap<number, MarketCounts> {
  const counts = [...world.versions].map(([version, task]) => {
    const counted = isApart ? remaining.filter((replica) => replica.version === version) : remaining;
    const readySpot = [...counted, ...moved].filter((replica) => replica.state === 'READY' && marketOf(replica) === 'spot').length;
    const facts = hedgeFor(world, version, inPlaceOf(moved, counted), numbers.desired);
    return [version, wantedMarkets(task, { ...numbers, readySpot, hedged: facts && hedgeMarkets(facts) })] as const;
  });
  return new Map(counts.flatMap(([version, wanted]) => (wanted === undefined ? [] : [[version, wanted] as const])));
}

/**
 * The replicas as the hedge counts them: each replacement of a moved replica as ready, because the moved one serves until
 * then; before, the moved one itself. Otherwise the hedge would add an on-demand replica for each recommendation.
 */
function inPlaceOf(moved: readonly ReplicaRecord[], remaining: readonly ReplicaRecord[]): readonly ReplicaRecord[] {
  if (moved.length === 0) return remaining;
  const starting = remaining.filter(({ state, offer }) => isAlive(state) && state !== 'READY' && offer !== null).slice(0, moved.length);
  return [
    ...remaining.map((replica) => (starting.includes(replica) ? { ...replica, state: 'READY' as const } : replica)),
    ...moved.slice(starting.length),
  ];
}

/** Input of the hedge of a version; undefined for other placers, and while no search has seen the version's zones. */
export function hedgeFor(
  { service, versions, zoneHistories: histories, replicas, now }: World,
  version: number,
  remaining: readonly ReplicaRecord[],
  desired: number,
): ReturnType<typeof hedgeFactsOf> {
  const task = versions.get(version);
  const policy = task?.service?.replicaPolicy;
  if (task === undefined || policy === undefined || spotPlacerOf(task) !== 'hedge') return undefined;
  const target = Math.max(0, desired - policy.baseOndemandFallbackReplicas);
  const known = { placement: service.memory.placement, search: searchOf(task), histories, target, now };
  // Another version may start faster or slower.
  const own = replicas.filter((replica) => replica.version === version && replica.firstReadyAt !== null);
  const facts = hedgeFactsOf(known, remaining, own.length > 0 ? own : replicas);
  // As a default it needs several zones; a file may request it for one.
  return policy.spotPlacer === undefined && (facts?.zones.length ?? 0) < 2 ? undefined : facts;
}
