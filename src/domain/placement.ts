/** A kind of machine at a place, and what it costs: what choosing needs to know of an offer. */
export interface PlaceableOffer {
  readonly provider: string;
  readonly region: string;
  readonly zone: string | undefined;
  readonly instanceType: string;
  readonly cpus: number;
  readonly accelerator: { readonly name: string; readonly count: number } | undefined;
  readonly spot: boolean;
  readonly hourlyUsd: number;
  /** How many such machines fit there now; absent where that is not known or has no end. */
  readonly room?: number | undefined;
}

/** An offer together with the alternative of `resources` that it is for: the same machine may be set up differently for another one. */
export interface Candidate<Offer extends PlaceableOffer = PlaceableOffer> {
  readonly offer: Offer;
  /** Index in `choices` of the task's resources. */
  readonly alternative: number;
}

/**
 * Why a place gives no machine: none left (`capacity`), the account may not have more (`quota`), the wanted price is too low (`price`), the
 * credentials may not (`permission`), asked too often (`throttled`), or what is wanted does not exist there (`unsupported`).
 */
export const refusalKinds = ['capacity', 'quota', 'price', 'permission', 'throttled', 'setup', 'unsupported'] as const;
export type RefusalKind = (typeof refusalKinds)[number];

/** What a refusal is about: the offer's kind of machine in its zone or in its region, everything in the region, or the whole place. */
export const refusalScopes = ['zone', 'region', 'whole-region', 'place'] as const;
export type RefusalScope = (typeof refusalScopes)[number];

/** That a place refused, and until when what it is about is not asked for again. Plain data: it is stored with the service. */
export interface Refusal {
  /** What was asked for; how much more the refusal covers is for `scope` and `kind` to say. */
  readonly offer: PlaceableOffer;
  readonly kind: RefusalKind;
  readonly scope: RefusalScope;
  /** How often in a row it has refused. */
  readonly count: number;
  /** ms since the epoch */
  readonly until: number;
  /** The place's own sentence. */
  readonly reason: string;
}

/** How long the last machines of a kind took at a place from being asked for until they ran, ms, oldest first. Plain data as well. */
export interface StartTimes {
  readonly kind: string;
  readonly took: readonly number[];
}

/** What is worth remembering of the places over a restart: plain data. */
export interface PlacementMemory {
  readonly refusals: readonly Refusal[];
  readonly starts: readonly StartTimes[];
}

/** Where living replicas of the service are: for spreading. */
export interface OccupiedPlace {
  readonly provider: string;
  readonly region: string;
  readonly zone?: string | null | undefined;
}

/** Everything besides the offers that the choice depends on. */
export interface PlacementFacts {
  /** Of the task's alternatives: `any` compares all by price, `ordered` goes through them one after the other. */
  readonly order: 'any' | 'ordered';
  readonly refusals: readonly Refusal[];
  readonly starts: readonly StartTimes[];
  readonly occupied: readonly OccupiedPlace[];
  /** ms since the epoch */
  readonly now: number;
}

/** What makes offers the same kind of machine at the same place: for telling what was learned about which. */
export function kindOf(offer: Omit<PlaceableOffer, 'cpus' | 'hourlyUsd'>): string {
  const { provider, region, zone = '', instanceType, accelerator, spot } = offer;
  // One machine can be offered with and without its accelerators.
  const equipped = accelerator === undefined ? '' : `${accelerator.name}:${accelerator.count}`;
  return [provider, region, zone, instanceType, equipped, spot ? 'spot' : ''].join('|');
}
