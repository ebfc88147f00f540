import type { KnownZone, OccupiedLocation, PlacementFacts, PlacementMemory } from '../placement.ts';
import type { ReplicaRecord } from '../records.ts';
import { medianOf } from '../placement/rank.ts';
import type { Task } from '../task.ts';
import { isAlive } from '../replica/replica-state.ts';
import { orderZones, type HedgeFacts, type HedgeReplica } from './hedge.ts';
import { marketsFor, searchOf } from './known-markets.ts';
import { marketOf, spotPlacerOf } from './markets.ts';
import { spotZoneOf } from './placer.ts';
import type { ZoneHistories } from './zone-history.ts';

/** Assumed start time before a replica was ready, ms: a GPU machine with a model. */
const usualColdStartMs = 180_000;

/** On-demand machines cost about this many times the spot price; used until a search has seen their price. */
const usualPriceRatio = 3;

interface HedgedReplica extends HedgeReplica {
  readonly id: number;
}

/** What a service knows for the hedge of one version. */
interface HedgedService {
  readonly placement: PlacementMemory | undefined;
  /** Of the version; see `searchOf`. */
  readonly search: string;
  readonly histories: ZoneHistories;
  readonly target: number;
  /** ms since the epoch. */
  readonly now: number;
}

/**
 * Input of the hedge for a service. Undefined until a search has seen its spot zones, and where none is cheaper than on
 * demand, as on machines of the user's own. `started`: replicas of which the start times count, also ended ones.
 */
export function hedgeFactsOf(
  service: HedgedService,
  remaining: readonly ReplicaRecord[],
  started: readonly ReplicaRecord[],
): HedgeFacts<HedgedReplica> | undefined {
  const took = started.flatMap(({ launchedAt, createdAt, firstReadyAt }) =>
    firstReadyAt === null ? [] : [Math.max(0, firstReadyAt - (launchedAt ?? createdAt))],
  );
  // A replica without an offer has no zone yet.
  const placed = remaining.filter(({ state, offer }) => isAlive(state) && offer !== null);
  const replicas = placed.map(({ id, offer, state, launchedAt, createdAt, market }) => ({
    id,
    zone: offer === null ? '' : spotZoneOf(offer),
    region: offer === null ? '' : regionOf(offer),
    isSpot: marketOf({ market, offer }) === 'spot',
    isReady: state === 'READY',
    launchedAt: launchedAt ?? createdAt,
  }));
  return factsWith(service, replicas, medianOf(took) ?? usualColdStartMs);
}

/** Zones for the next spot launch, best first, given where replicas of the service are; undefined as above. */
function hedgedZoneOrder(service: HedgedService, occupied: readonly OccupiedLocation[]): readonly string[] | undefined {
  const replicas = occupied.map((location) => ({
    zone: spotZoneOf(location),
    region: regionOf(location),
    isSpot: location.spot !== false,
    isReady: true,
    launchedAt: service.now,
  }));
  const facts = factsWith(service, replicas, usualColdStartMs);
  return facts && orderZones(facts);
}

/** The same for a task, as the ranking of candidates needs it; undefined for other placers. */
export function zoneOrderOf(
  task: Task,
  placement: () => HedgedService['placement'],
  histories: () => ZoneHistories,
  now: () => number,
): PlacementFacts['zoneOrder'] {
  const policy = task.service?.replicaPolicy;
  if (policy === undefined || spotPlacerOf(task) !== 'hedge') return undefined;
  const search = searchOf(task);
  return (occupied) => {
    // The launch is decided: it is no spare here, whose zones would be limited.
    const target = Math.max(policy.minReplicas, occupied.length + 1);
    return hedgedZoneOrder({ placement: placement(), search, histories: histories(), target, now: now() }, occupied);
  };
}

const regionOf = ({ provider, region }: Pick<OccupiedLocation, 'provider' | 'region'>): string => `${provider}|${region}`;

function factsWith<R extends HedgeReplica>(
  { placement, search, histories, target, now }: HedgedService,
  replicas: readonly R[],
  coldStartMs: number,
): HedgeFacts<R> | undefined {
  // Zones and prices of another version may have no machines for this one.
  const known = marketsFor(placement, search);
  const zones = (known?.spotZones ?? []).flatMap(({ zone, region, hourlyUsd }: KnownZone) =>
    region === undefined || hourlyUsd === undefined ? [] : [{ zone, region, price: hourlyUsd }],
  );
  if (zones.length === 0) return undefined;
  const onDemandPrice = known?.onDemandUsd ?? usualPriceRatio * Math.min(...zones.map(({ price }) => price));
  if (!zones.some(({ price }) => price < onDemandPrice)) return undefined;
  return { target, coldStartMs, onDemandPrice, zones, replicas, histories, now };
}
