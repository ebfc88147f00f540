import type { Ec2 } from './client.ts';
import type { HomeIdentity } from '../vm/home-identity.ts';
import { sharedTags } from '../vm/tags.ts';
import { hasAwsCode } from './errors.ts';
import { livingStates, ofHome, tagList } from './tags.ts';

/** Derived from the key: equal names mean equal keys. */
export function keyPairName(identity: Pick<HomeIdentity, 'id'>): string {
  return `svc-${identity.id}`;
}

/** Imports the home's public key into a region. */
export async function ensureKeyPair(ec2: Ec2, identity: HomeIdentity): Promise<void> {
  try {
    await ec2.importKeyPair({
      KeyName: keyPairName(identity),
      PublicKeyMaterial: Buffer.from(identity.key.publicLine),
      TagSpecifications: [{ ResourceType: 'key-pair', Tags: tagList(sharedTags(identity.id, undefined)) }],
    });
  } catch (error) {
    if (!hasAwsCode(error, 'InvalidKeyPair.Duplicate')) throw error;
  }
}

/** Only if the home has no machine in the region. The next launch imports the key again. */
export async function removeUnusedKeyPair(ec2: Ec2, identity: Pick<HomeIdentity, 'id'>): Promise<void> {
  const left = await ec2.instances([...ofHome(identity.id, undefined), livingStates]);
  if (left.length > 0) return;
  try {
    await ec2.deleteKeyPair(keyPairName(identity));
  } catch (error) {
    if (!hasAwsCode(error, 'InvalidKeyPair.NotFound')) throw error;
  }
}
