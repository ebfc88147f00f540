import type { PlaceableOffer } from '../placement.ts';

/** What `dynamic_fallback` remembers of a spot zone. Plain data, stored with the service. */
export interface SpotZone {
  /** See `spotZoneOf`. */
  readonly zone: string;
  /** Whether its last launch was refused, or its last machine was reclaimed. */
  readonly isPreempted: boolean;
}

/** Key of an offer's zone. */
export function spotZoneOf({ provider, region, zone }: Pick<PlaceableOffer, 'provider' | 'region'> & { readonly zone?: string | null | undefined }): string {
  return [provider, region, zone ?? ''].join('|');
}

/** Adds the zones of new spot offers, as active ones. */
export function addZones(zones: readonly SpotZone[], offers: readonly PlaceableOffer[]): readonly SpotZone[] {
  const known = new Set(zones.map(({ zone }) => zone));
  const found = new Set(offers.filter(({ spot }) => spot).map(spotZoneOf));
  const added = [...found].filter((zone) => !known.has(zone));
  return added.length === 0 ? zones : [...zones, ...added.map((zone) => ({ zone, isPreempted: false }))];
}

/** Fewer active zones than this make all zones active again, as in SkyServe: one zone alone could be exhausted. */
const fewestActive = 2;

/** Records a refused launch or a lost machine. */
export function preemptZone(zones: readonly SpotZone[], offer: PlaceableOffer): readonly SpotZone[] {
  const marked = change(addZones(zones, [offer]), offer, true);
  const active = marked.filter(({ isPreempted }) => !isPreempted);
  return active.length < fewestActive ? marked.map(({ zone }) => ({ zone, isPreempted: false })) : marked;
}

/** Records a launch that the zone accepted. */
export function activateZone(zones: readonly SpotZone[], offer: PlaceableOffer): readonly SpotZone[] {
  return change(zones, offer, false);
}

function change(zones: readonly SpotZone[], offer: PlaceableOffer, isPreempted: boolean): readonly SpotZone[] {
  const key = spotZoneOf(offer);
  const isNew = offer.spot && zones.some(({ zone, ...known }) => zone === key && known.isPreempted !== isPreempted);
  return isNew ? zones.map((one) => (one.zone === key ? { zone: key, isPreempted } : one)) : zones;
}
