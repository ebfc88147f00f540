import type { Resources } from '../task.ts';

/** What of `resources` needs an ability that not every place has. */
export type AbilityWishes = Pick<Resources, 'useSpot' | 'imageId' | 'diskTier' | 'networkTier'>;

/** What a place can do; absent is no. */
export interface PlaceAbilities {
  readonly spot: boolean;
  readonly customImages: boolean;
  readonly multiNode: boolean;
  readonly diskTiers?: boolean;
  readonly networkTiers?: boolean;
}

/**
 * What is asked for, for machines of so many nodes, and cannot be done at a place at all, as a sentence without its full stop that names the field; undefined when all of it can.
 * The best tier of a disk is what a place has where it has only one; a network of a better tier is a different thing.
 */
export function missingAbility(wishes: AbilityWishes, abilities: PlaceAbilities, nodes = 1): string | undefined {
  const { useSpot, imageId, diskTier, networkTier } = wishes;
  if (nodes > 1 && !abilities.multiNode) return `its machines have one node each (num_nodes: ${nodes})`;
  if (useSpot && !abilities.spot) return 'it has no spot machines (use_spot)';
  if (imageId !== undefined && !abilities.customImages) return 'it takes no images of its users (image_id)';
  if (diskTier !== undefined && diskTier !== 'best' && abilities.diskTiers !== true)
    return `its disks cannot be chosen (disk_tier: ${diskTier})`;
  if (networkTier === 'best' && abilities.networkTiers !== true) return 'its networks cannot be chosen (network_tier: best)';
  return undefined;
}
