import type { Ec2 } from './client.ts';
import { hasAwsCode } from './errors.ts';
import type { HomeIdentity } from './home-identity.ts';
import { removeUnusedKeyPair } from './key-pair.ts';
import { removeGroups } from './security-group.ts';
import { ofHome } from './tag-filter.ts';

/**
 * Removes what an owner (undefined: any) has in a region beside machines: what a machine may leave behind first, then the groups that it would hold on to, and the
 * home's key when no machine is left that it opens. Throws SVC_PLACE_FAILED while a machine that is going away still holds on to something.
 */
export async function releaseRegion(
  ec2: Ec2,
  region: string,
  identity: Pick<HomeIdentity, 'id'>,
  owner: string | undefined,
): Promise<void> {
  const ofOwner = ofHome(identity.id, owner);
  for (const { VolumeId } of await ec2.volumes([...ofOwner, { Name: 'status', Values: ['available', 'error'] }]))
    if (VolumeId !== undefined) await removeVolume(ec2, VolumeId);
  await removeGroups(ec2, region, ofOwner);
  await removeUnusedKeyPair(ec2, identity);
}

async function removeVolume(ec2: Ec2, id: string): Promise<void> {
  try {
    await ec2.deleteVolume(id);
  } catch (error) {
    if (!hasAwsCode(error, 'InvalidVolume.NotFound')) throw error;
  }
}
