import type { Resources } from '../task.ts';
import type { PlaceableOffer } from '../placement.ts';

/** What of `resources` a choice must keep to whatever a place says it offers. */
export type OfferLimits = Pick<Resources, 'cloud' | 'region' | 'zone' | 'useSpot' | 'maxHourlyCost'>;

/** Why an offer is out of the question, as a clause such as `costs 3.20 $/h, more than max_hourly_cost (2 $/h)`; undefined when it is not. */
export function excludedBy(limits: OfferLimits, offer: PlaceableOffer): string | undefined {
  const { cloud, region, zone, useSpot, maxHourlyCost } = limits;
  if (cloud !== undefined && cloud !== offer.provider) return `is not of ${cloud}`;
  if (region !== undefined && region !== offer.region) return `is not in region ${region}`;
  if (zone !== undefined && zone !== offer.zone) return `is not in zone ${zone}`;
  if (useSpot !== offer.spot) return useSpot ? 'is not a spot machine' : 'is a spot machine';
  if (maxHourlyCost !== undefined && offer.hourlyUsd > maxHourlyCost) {
    return `costs ${offer.hourlyUsd.toFixed(2)} $/h, more than max_hourly_cost (${maxHourlyCost} $/h)`;
  }
  return undefined;
}
