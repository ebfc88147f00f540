import type { OccupiedLocation, PlaceableOffer, KnownZone } from '../placement.ts';

/** Key of an offer's zone. */
export function spotZoneOf({ provider, region, zone }: OccupiedLocation): string {
  return [provider, region, zone ?? ''].join('|');
}

/** Adds the zones of a search's spot offers, new ones as active, with their present prices. */
export function addZones(zones: readonly KnownZone[], offers: readonly PlaceableOffer[]): readonly KnownZone[] {
  const found = Map.groupBy(
    offers.filter(({ spot }) => spot),
    spotZoneOf,
  );
  const known = new Map(zones.map((one) => [one.zone, one]));
  let isNew = false;
  for (const [zone, ofZone] of found) {
    const before = known.get(zone);
    const hourlyUsd = Math.min(...ofZone.map((offer) => offer.hourlyUsd));
    if (before?.hourlyUsd === hourlyUsd) continue;
    isNew = true;
    const [region] = ofZone.map((offer) => `${offer.provider}|${offer.region}`);
    known.set(zone, { zone, isPreempted: before?.isPreempted ?? false, ...(region !== undefined && { region }), hourlyUsd });
  }
  return isNew ? [...known.values()] : zones;
}

/** Fewer active zones than this make all zones active again, as in SkyServe: one zone alone could be exhausted. */
const fewestActive = 2;

/** Records a refused launch or a lost machine. */
export function preemptZone(zones: readonly KnownZone[], offer: PlaceableOffer): readonly KnownZone[] {
  const marked = change(zones, offer, true);
  if (marked === zones) return zones;
  const active = marked.filter(({ isPreempted }) => !isPreempted);
  return active.length < fewestActive ? marked.map((one) => ({ ...one, isPreempted: false })) : marked;
}

/** Records a launch that the zone accepted. */
export function activateZone(zones: readonly KnownZone[], offer: PlaceableOffer): readonly KnownZone[] {
  return change(zones, offer, false);
}

function change(zones: readonly KnownZone[], offer: PlaceableOffer, isPreempted: boolean): readonly KnownZone[] {
  const key = spotZoneOf(offer);
  const isNew = offer.spot && zones.some((known) => known.zone === key && known.isPreempted !== isPreempted);
  return isNew ? zones.map((one) => (one.zone === key ? { ...one, isPreempted } : one)) : zones;
}
