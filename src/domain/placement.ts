/** What choosing among offers needs to know of each. */
export interface PlaceableOffer {
  readonly provider: string;
  readonly region: string;
  readonly zone: string | undefined;
  readonly instanceType: string;
  readonly accelerator: { readonly name: string; readonly count: number } | undefined;
  readonly spot: boolean;
  readonly hourlyUsd: number;
}

/**
 * Why a place gives no machine: none left (`capacity`), the account may not have more (`quota`), the wanted price is too low (`price`), the
 * credentials may not (`permission`), asked too often (`throttled`), or what is wanted does not exist there (`unsupported`).
 */
export type RefusalKind = 'capacity' | 'quota' | 'price' | 'permission' | 'throttled' | 'unsupported';

/** What a refusal is about: the offer's kind of machine in its zone or in its region, everything in the region, or the whole place. */
export type RefusalScope = 'zone' | 'region' | 'whole-region' | 'place';

/** A place that refused, and until when it is not asked again. */
export interface Refusal {
  readonly provider: string;
  readonly region: string;
  readonly zone: string | undefined;
  readonly instanceType: string;
  readonly accelerator: { readonly name: string; readonly count: number } | undefined;
  readonly spot: boolean;
  readonly kind: 'capacity' | 'quota';
  /** How often in a row it has refused. */
  readonly count: number;
  readonly until: number;
}

/** Where living replicas of the service are: for spreading over places of equal price. */
export type Occupied = readonly { readonly provider: string; readonly region: string }[];

const firstCapacityPauseMs = 10_000;
const longestCapacityPauseMs = 300_000;
const quotaPauseMs = 3_600_000;

const samePlace = (a: PlaceableOffer | Refusal, b: PlaceableOffer | Refusal): boolean =>
  a.provider === b.provider &&
  a.region === b.region &&
  a.zone === b.zone &&
  a.instanceType === b.instanceType &&
  a.spot === b.spot &&
  // One machine can be offered with and without its accelerators.
  a.accelerator?.name === b.accelerator?.name &&
  a.accelerator?.count === b.accelerator?.count;

/** Offers to try now, best first: cheapest, then where fewest replicas of the service are, then as the places gave them. Refused ones are left out. */
export function orderOffers<O extends PlaceableOffer>(
  offers: readonly O[],
  refusals: readonly Refusal[],
  occupied: Occupied,
  now: number,
): readonly O[] {
  const crowd = (offer: O): number => occupied.filter((one) => one.provider === offer.provider && one.region === offer.region).length;
  return offers
    .filter((offer) => !refusals.some((refusal) => refusal.until > now && samePlace(refusal, offer)))
    .map((offer, index) => ({ offer, index, crowd: crowd(offer) }))
    .toSorted((a, b) => a.offer.hourlyUsd - b.offer.hourlyUsd || a.crowd - b.crowd || a.index - b.index)
    .map(({ offer }) => offer);
}

/** Remembers that a place refused: for 10 s, doubling to 5 min, where it had no capacity; for an hour where a quota forbids. */
export function rememberRefusal(
  refusals: readonly Refusal[],
  offer: PlaceableOffer,
  kind: Refusal['kind'],
  now: number,
): readonly Refusal[] {
  const before = refusals.find((one) => samePlace(one, offer));
  const count = (before?.count ?? 0) + 1;
  const pause = kind === 'quota' ? quotaPauseMs : Math.min(longestCapacityPauseMs, firstCapacityPauseMs * 2 ** (count - 1));
  const { provider, region, zone, instanceType, accelerator, spot } = offer;
  return [
    ...refusals.filter((one) => one !== before),
    { provider, region, zone, instanceType, accelerator, spot, kind, count, until: now + pause },
  ];
}

/** A place that gave a machine is good again. */
export function forgetRefusal(refusals: readonly Refusal[], offer: PlaceableOffer): readonly Refusal[] {
  return refusals.filter((one) => !samePlace(one, offer));
}

/** When the first of the refused offers may be asked again, ms; undefined when none of them is refused. */
export function nextAttemptAt(offers: readonly PlaceableOffer[], refusals: readonly Refusal[]): number | undefined {
  const times = refusals.filter((refusal) => offers.some((offer) => samePlace(offer, refusal))).map((refusal) => refusal.until);
  return times.length === 0 ? undefined : Math.min(...times);
}
