import type { World } from '../decision.ts';
import type { Refusal } from '../placement.ts';
import { covers } from '../placement/refusals.ts';
import type { ReplicaRecord } from '../records.ts';
import { isAlive } from '../replica/replica-state.ts';
import { hedgeMarkets } from './hedge.ts';
import { hedgeFactsOf } from './hedged-service.ts';
import { marketsFor, searchOf } from './known-markets.ts';
import { marketOf, spotPlacerOf, wantedMarkets, type MarketCounts } from './markets.ts';

interface SplitFacts {
  /** The versions that replicas may be launched of. */
  readonly launched: readonly number[];
  /** The replicas that count: without those that are interrupted or silent, or moved. */
  readonly remaining: readonly ReplicaRecord[];
  /** Replicas that serve until their replacements are ready; see `replicasToMove`. */
  readonly moved: readonly ReplicaRecord[];
  /** Whether each version needs all its replicas: spot replicas of another one serve nothing for it. */
  readonly isApart: boolean;
  /** See `spotWait`. */
  readonly replaced: SpotWait['replaced'];
  /** What the load requires. */
  readonly target: number;
  /** The same with overprovisioning. */
  readonly desired: number;
}

/** Wanted replicas by market, for each launched version whose file does not leave the market to the search. */
export function splitByMarket(
  world: World,
  { launched, remaining, moved, isApart, replaced, ...numbers }: SplitFacts,
): ReadonlyMap<number, MarketCounts> {
  const counts = [...new Set(launched)].map((version) => {
    const task = world.versions.get(version);
    const isOwn = (replica: ReplicaRecord): boolean => replica.version === version;
    const counted = remaining.filter((replica) => isOwn(replica) || !(isApart || replaced.includes(replica)));
    const readySpot = [...counted, ...moved].filter((replica) => replica.state === 'READY' && marketOf(replica) === 'spot').length;
    const facts = hedgeFor(world, version, inPlaceOf(moved, counted), numbers.desired);
    const wanted = task && wantedMarkets(task, { ...numbers, readySpot, hedged: facts && hedgeMarkets(facts) });
    if (wanted === undefined || replaced.length === 0 || version !== world.service.version) return [version, wanted] as const;
    // Replicas that wait for spot show that it is refused. Without them the next decision would want spot again.
    const livingSpot = remaining.filter((one) => isOwn(one) && isAlive(one.state) && marketOf(one) === 'spot').length;
    return [version, { ...wanted, spot: Math.max(wanted.spot, livingSpot) }] as const;
  });
  return new Map(counts.flatMap(([version, wanted]) => (wanted === undefined ? [] : [[version, wanted] as const])));
}

/** A version of an update whose spot machines are refused. */
interface SpotWait {
  /** Its spot replicas without a machine. */
  readonly waiting: number;
  /**
   * Ready spot replicas of other versions that the update replaces next. They do not count for the version, so it gets
   * on-demand replicas for them, as a new service does. Otherwise the update would wait for spot.
   */
  readonly replaced: readonly ReplicaRecord[];
}

/**
 * What an update does without spot machines. It applies while each zone has refused since the oldest waiting launch began,
 * or had refused before and was not to be asked yet. A held update starts no other replicas.
 */
export function spotWait(
  { service, versions }: Pick<World, 'service' | 'versions'>,
  remaining: readonly ReplicaRecord[],
  surge: number,
): SpotWait {
  const { placement, update } = service.memory;
  const task = versions.get(service.version);
  const zones = (task && marketsFor(placement, searchOf(task))?.spotZones) ?? [];
  const ofSpot = remaining.filter((replica) => isAlive(replica.state) && marketOf(replica) === 'spot');
  const waiting = ofSpot.filter(({ version, machineId }) => version === service.version && machineId === null);
  const since = Math.min(...waiting.map(({ createdAt }) => createdAt));
  const refusals = placement?.refusals.filter(({ kind, until, offer }) => offer.spot && kind !== 'throttled' && until >= since) ?? [];
  const isRefused = zones.length > 0 && zones.every(({ zone }) => refusals.some((refusal) => coversZone(refusal, zone)));
  if (update === undefined || update.paused !== undefined || !isRefused) return { waiting: 0, replaced: [] };
  const replaced = ofSpot.filter(({ version, state }) => version !== service.version && state === 'READY').slice(0, surge);
  return { waiting: replaced.length === 0 ? 0 : waiting.length, replaced };
}

/** Whether a refusal covers its own kind of machine in a zone; see `spotZoneOf`. */
function coversZone(refusal: Refusal, key: string): boolean {
  const [provider = '', region = '', zone = ''] = key.split('|');
  return covers(refusal, { ...refusal.offer, provider, region, zone: zone === '' ? undefined : zone });
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
