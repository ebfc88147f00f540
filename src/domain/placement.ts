import type { SpotPlacer } from './task.ts';

/** Spot machines, or machines that the provider does not reclaim. */
export const markets = ['spot', 'on-demand'] as const;
export type Market = (typeof markets)[number];

/** A kind of machine at a location, and its price: the fields of an offer that placement needs. */
export interface PlaceableOffer {
  readonly provider: string;
  readonly region: string;
  readonly zone: string | undefined;
  readonly instanceType: string;
  readonly cpus: number;
  readonly accelerator: { readonly name: string; readonly count: number } | undefined;
  readonly spot: boolean;
  readonly hourlyUsd: number;
  /** How many such machines the location has room for now; absent when unknown or unlimited. */
  readonly room?: number | undefined;
}

/** An offer and its alternative of `resources`; another alternative may set up the same machine differently. */
export interface Candidate<Offer extends PlaceableOffer = PlaceableOffer> {
  readonly offer: Offer;
  /** Index in `choices` of the task's resources. */
  readonly alternative: number;
}

/**
 * The cause of a refusal, or of another failure to get a machine.
 * - `capacity`: the provider has no such machine left.
 * - `quota`: the account or namespace has reached its limit.
 * - `price`: the spot price is above the bid.
 * - `permission`: the credentials lack a right.
 * - `throttled`: too many calls.
 * - `provider-error`: the provider answered with an error of its own, or not at all. It says nothing about machines.
 * - `setup`: the provider lacks something that the machine needs, or a policy forbids the request.
 * - `unsupported`: the provider does not support the request.
 * - `failed-launch`: the provider accepted, and the machine ended before it ran.
 */
export const refusalKinds = [
  'capacity',
  'quota',
  'price',
  'permission',
  'throttled',
  'provider-error',
  'setup',
  'unsupported',
  'failed-launch',
] as const;
export type RefusalKind = (typeof refusalKinds)[number];

/**
 * Scope of a refusal: its kind of machine in the zone or in the region, the whole region, or the provider. `namespace`:
 * requests of this size or larger in a Kubernetes namespace, whose quota frees as soon as a pod ends.
 */
export const refusalScopes = ['zone', 'region', 'namespace', 'whole-region', 'provider'] as const;
export type RefusalScope = (typeof refusalScopes)[number];

/** A refusal, and until when the search does not ask again within its scope. Plain data, stored with the service. */
export interface Refusal {
  /** The offer that was requested. `scope` and `kind` define which other offers the refusal covers. */
  readonly offer: PlaceableOffer;
  readonly kind: RefusalKind;
  readonly scope: RefusalScope;
  /** Number of consecutive refusals. */
  readonly count: number;
  /** Time of the last refusal, ms since the epoch. Records of older versions lack it. */
  readonly at?: number;
  /** ms since the epoch */
  readonly until: number;
  /** The provider's own message. */
  readonly reason: string;
  /** Refused after acceptance: only a running machine then shows that the cause has passed. */
  readonly isLate?: boolean;
  /** Key of the last launch that was tried despite this late refusal. Other launches wait for its result. */
  readonly triedBy?: string;
}

/** How long the last machines of a kind took from the request until they ran, ms, oldest first. Plain data too. */
export interface StartTimes {
  readonly kind: string;
  readonly took: readonly number[];
}

/** What the spot placers remember of a zone. Plain data too. */
export interface KnownZone {
  /** See `spotZoneOf` in `spot/placer.ts`. */
  readonly zone: string;
  /** Whether its last launch was refused, or its last machine was reclaimed. */
  readonly isPreempted: boolean;
  /** Provider and region. Absent, as the price, until a search has seen the zone. */
  readonly region?: string;
  /** Lowest price of a spot offer there, US dollars. */
  readonly hourlyUsd?: number;
}

/** What searches for the same machines have seen of both markets. Plain data too. */
export interface KnownMarkets {
  /** See `searchOf` in `spot/known-markets.ts`. Absent in older records: they apply to any search. */
  readonly search?: string;
  /** Zones of spot offers; absent in records of older versions. */
  readonly spotZones?: readonly KnownZone[];
  /** Lowest price of an on-demand offer, US dollars. */
  readonly onDemandUsd?: number;
}

/** Knowledge about locations that is kept over a restart: plain data. Its markets are those of the last search. */
export interface PlacementMemory extends KnownMarkets {
  readonly refusals: readonly Refusal[];
  readonly starts: readonly StartTimes[];
  /** Of searches for other machines, as of other versions of the file; the last ones first. */
  readonly otherMarkets?: readonly KnownMarkets[];
}

/** Location of a living replica of the service; used for spreading. */
export interface OccupiedLocation {
  readonly provider: string;
  readonly region: string;
  readonly zone?: string | null | undefined;
  /** Absent: unknown, which counts as spot. */
  readonly spot?: boolean;
  /** Whether the replica was ready and fails its probes: another location is likelier to serve. */
  readonly isFailing?: boolean;
}

/** All inputs of the choice besides the offers. */
export interface PlacementFacts {
  /** Order of the task's alternatives: `any` compares all by price, `ordered` tries them one after another. */
  readonly order: 'any' | 'ordered';
  readonly refusals: readonly Refusal[];
  readonly starts: readonly StartTimes[];
  readonly occupied: readonly OccupiedLocation[];
  /** ms since the epoch */
  readonly now: number;
  /** How spot offers are ordered; absent: as all others. */
  readonly placer?: SpotPlacer | undefined;
  readonly spotZones?: readonly KnownZone[] | undefined;
  /**
   * Expected seconds from a launch to a ready replica. When present, the shortest time comes before the price: see
   * `placement/wake.ts`.
   */
  readonly readySeconds?: ((offer: PlaceableOffer) => number) | undefined;
  /** For the spot placer `hedge`: zones for one more replica, best first, given the locations of the others. */
  readonly zoneOrder?: ((occupied: readonly OccupiedLocation[]) => readonly string[] | undefined) | undefined;
}

/** Key of a kind of machine at a location. Refusals and start times are recorded under it. */
export function kindOf(offer: Omit<PlaceableOffer, 'cpus' | 'hourlyUsd'>): string {
  const { provider, region, zone = '', instanceType, accelerator, spot } = offer;
  // One machine can be offered with and without its accelerators.
  const equipped = accelerator === undefined ? '' : `${accelerator.name}:${accelerator.count}`;
  return [provider, region, zone, instanceType, equipped, spot ? 'spot' : ''].join('|');
}
