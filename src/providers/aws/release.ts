import type { Ec2 } from './client.ts';
import { hasAwsCode } from './errors.ts';
import { removeUnusedKeyPair } from './key-pair.ts';
import { removeGroups } from './security-group.ts';
import { ofHome } from './tags.ts';

/**
 * Removes an owner's resources (undefined: any owner's). Volumes come first, because they may use a group; the home's
 * key last, if the home has no machine there. Throws SVC_PLACE_FAILED while an ending machine still uses a resource.
 */
export async function releaseRegion(
  ec2: Ec2,
  region: string,
  { home, owner }: { readonly home: string; readonly owner: string | undefined },
): Promise<void> {
  const ofOwner = ofHome(home, owner);
  for (const { VolumeId } of await ec2.volumes([...ofOwner, { Name: 'status', Values: ['available', 'error'] }]))
    if (VolumeId !== undefined) await removeVolume(ec2, VolumeId);
  await removeGroups(ec2, region, ofOwner);
  await removeUnusedKeyPair(ec2, { id: home });
}

async function removeVolume(ec2: Ec2, id: string): Promise<void> {
  try {
    await ec2.deleteVolume(id);
  } catch (error) {
    if (!hasAwsCode(error, 'InvalidVolume.NotFound')) throw error;
  }
}
