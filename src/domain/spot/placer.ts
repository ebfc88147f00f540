import type { OccupiedLocation, PlaceableOffer, KnownZone } from '../placement.ts';

/** Key of an offer's zone. */
export function spotZoneOf({ provider, region, zone }: OccupiedLocation): string {
  return [provider, region, zone ?? ''].join('|');
}

/** Adds the zones of new spot offers, as active ones. */
export function addZones(zones: readonly KnownZone[], offers: readonly PlaceableOffer[]): readonly KnownZone[] {
  const known = new Set(zones.map(({ zone }) => zone));
  const found = new Set(offers.filter(({ spot }) => spot).map(spotZoneOf));
  const added = [...found].filter((zone) => !known.has(zone));
  return added.length === 0 ? zones : [...zones, ...added.map((zone) => ({ zone, isPreempted: false }))];
}

/** Fewer active zones than this make all zones active again, as in SkyServe: one zone alone could be exhausted. */
const fewestActive = 2;

/** Records a refused launch or a lost machine. */
export function preemptZone(zones: readonly KnownZone[], offer: PlaceableOffer): readonly KnownZone[] {
  const marked = change(addZones(zones, [offer]), offer, true);
  const active = marked.filter(({ isPreempted }) => !isPreempted);
  return active.length < fewestActive ? marked.map(({ zone }) => ({ zone, isPreempted: false })) : marked;
}

/** Records a launch that the zone accepted. */
export function activateZone(zones: readonly KnownZone[], offer: PlaceableOffer): readonly KnownZone[] {
  return change(zones, offer, false);
}

function change(zones: readonly KnownZone[], offer: PlaceableOffer, isPreempted: boolean): readonly KnownZone[] {
  const key = spotZoneOf(offer);
  const isNew = offer.spot && zones.some(({ zone, ...known }) => zone === key && known.isPreempted !== isPreempted);
  return isNew ? zones.map((one) => (one.zone === key ? { zone: key, isPreempted } : one)) : zones;
}
