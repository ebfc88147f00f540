import type { World } from '../decision.ts';
import type { ReplicaRecord } from '../records.ts';
import { hedgeMarkets } from './hedge.ts';
import { hedgeFactsOf } from './hedged-service.ts';
import { searchOf } from './known-markets.ts';
import { marketOf, spotPlacerOf, wantedMarkets, type MarketCounts } from './markets.ts';

interface SplitFacts {
  /** The replicas that count: without those that are interrupted or silent. */
  readonly remaining: readonly ReplicaRecord[];
  /** What the load requires. */
  readonly target: number;
  /** The same with overprovisioning. */
  readonly desired: number;
}

/** Wanted replicas by market, for each version whose file does not leave the market to the search. */
export function splitByMarket(world: World, { remaining, ...numbers }: SplitFacts): ReadonlyMap<number, MarketCounts> {
  const readySpot = remaining.filter((replica) => replica.state === 'READY' && marketOf(replica) === 'spot').length;
  const counts = [...world.versions].map(([version, task]) => {
    const facts = hedgeFor(world, version, remaining, numbers.desired);
    const hedged = facts && hedgeMarkets(facts);
    return [version, wantedMarkets(task, { ...numbers, readySpot, hedged })] as const;
  });
  return new Map(counts.flatMap(([version, wanted]) => (wanted === undefined ? [] : [[version, wanted] as const])));
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
