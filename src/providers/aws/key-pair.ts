import type { Ec2 } from './client.ts';
import { hasAwsCode } from './errors.ts';
import type { HomeIdentity } from './home-identity.ts';
import { livingStates, tagFilter } from './tag-filter.ts';
import { ownTags, sharedTags } from './tags.ts';

/** The name under which a region knows the home's key; it names the key, so that what is called so is the same key. */
export function keyPairName(identity: Pick<HomeIdentity, 'id'>): string {
  return `svc-${identity.id}`;
}

/** Makes the home's public key known in a region. */
export async function ensureKeyPair(ec2: Ec2, identity: HomeIdentity): Promise<void> {
  try {
    await ec2.importKeyPair({
      KeyName: keyPairName(identity),
      PublicKeyMaterial: Buffer.from(identity.key.publicLine),
      TagSpecifications: [{ ResourceType: 'key-pair', Tags: sharedTags(identity.id, undefined) }],
    });
  } catch (error) {
    if (!hasAwsCode(error, 'InvalidKeyPair.Duplicate')) throw error;
  }
}

/** Removes the home's key from a region where the home has no machine any more; it is imported again when one is asked for. */
export async function removeUnusedKeyPair(ec2: Ec2, identity: Pick<HomeIdentity, 'id'>): Promise<void> {
  const left = await ec2.instances([tagFilter(ownTags.home, identity.id), livingStates]);
  if (left.length > 0) return;
  try {
    await ec2.deleteKeyPair(keyPairName(identity));
  } catch (error) {
    if (!hasAwsCode(error, 'InvalidKeyPair.NotFound')) throw error;
  }
}
