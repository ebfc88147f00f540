import type { Resources } from '../task.ts';

/** The fields of `resources` that need an ability which not every provider has. */
type RequestedAbilities = Pick<Resources, 'useSpot' | 'imageId' | 'diskTier' | 'networkTier'>;

/** Abilities of a provider; absent means no. */
interface ProviderAbilities {
  readonly spot: boolean;
  readonly customImages: boolean;
  readonly multiNode: boolean;
  readonly diskTiers?: boolean;
  readonly networkTiers?: boolean;
}

/**
 * The first requested ability that a provider lacks, for machines of `nodes` nodes. A sentence without its full stop
 * that names the field; undefined when the provider has all.
 * A provider with a single disk tier satisfies `disk_tier: best`. `network_tier: best` needs real support.
 */
export function missingAbility(requested: RequestedAbilities, abilities: ProviderAbilities, nodes = 1): string | undefined {
  const { useSpot, imageId, diskTier, networkTier } = requested;
  if (nodes > 1 && !abilities.multiNode) return `its machines have one node each (num_nodes: ${nodes})`;
  if (useSpot && !abilities.spot) return 'it has no spot machines (use_spot)';
  if (imageId !== undefined && !abilities.customImages) return 'it takes no images of its users (image_id)';
  if (diskTier !== undefined && diskTier !== 'best' && abilities.diskTiers !== true)
    return `its disks cannot be chosen (disk_tier: ${diskTier})`;
  if (networkTier === 'best' && abilities.networkTiers !== true) return 'its networks cannot be chosen (network_tier: best)';
  return undefined;
}
