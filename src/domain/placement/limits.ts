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

/** What of `resources` needs an ability that not every place has. */
export type AbilityWishes = Pick<Resources, 'useSpot' | 'imageId' | 'diskTier' | 'networkTier'>;

/** What a place can do; absent is no. */
export interface PlaceAbilities {
  readonly spot: boolean;
  readonly customImages: boolean;
  readonly diskTiers?: boolean;
  readonly networkTiers?: boolean;
}

/**
 * What is asked for and cannot be done at a place at all, as a sentence without its full stop that names the field; undefined when all of it can.
 * The best tier of a disk is what a place has where it has only one; a network of a better tier is a different thing.
 */
export function missingAbility(wishes: AbilityWishes, abilities: PlaceAbilities): string | undefined {
  const { useSpot, imageId, diskTier, networkTier } = wishes;
  if (useSpot && !abilities.spot) return 'it has no spot machines (use_spot)';
  if (imageId !== undefined && !abilities.customImages) return 'it takes no images of its users (image_id)';
  if (diskTier !== undefined && diskTier !== 'best' && abilities.diskTiers !== true)
    return `its disks cannot be chosen (disk_tier: ${diskTier})`;
  if (networkTier === 'best' && abilities.networkTiers !== true) return 'its networks cannot be chosen (network_tier: best)';
  return undefined;
}
