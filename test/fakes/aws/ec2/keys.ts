import { createHash } from 'node:crypto';
import type {
  DeleteKeyPairRequest,
  DeleteKeyPairResult,
  DescribeKeyPairsRequest,
  DescribeKeyPairsResult,
  ImportKeyPairRequest,
  ImportKeyPairResult,
} from '@aws-sdk/client-ec2';
import type { Caller } from '../core/action.ts';
import { ApiError } from '../wire/api-error.ts';
import type { Ec2 } from './ec2.ts';
import { filtered } from './filters.ts';
import type { KeyRecord } from './records.ts';
import { checkTagKinds, shownTags, tagsFor } from './tagging.ts';

const kinds: Readonly<Record<string, KeyRecord['type']>> = { 'ssh-rsa': 'rsa', 'ssh-ed25519': 'ed25519' };

/** Imports a public key in OpenSSH's format. Names are unique, even before reads see the key. */
export function importKeyPair(ec2: Ec2, input: ImportKeyPairRequest, { region: regionName }: Caller): ImportKeyPairResult {
  const region = ec2.region(regionName);
  const { KeyName: name = '', PublicKeyMaterial: material = new Uint8Array() } = input;
  if (name === '' || name.length > 255)
    throw new ApiError('InvalidParameterValue', `Value (${name}) for parameter KeyName is invalid.`, 400);
  checkTagKinds(input.TagSpecifications, ['key-pair']);
  const publicKey = Buffer.from(material).toString('utf8').trim();
  const [kind = '', body = ''] = publicKey.split(/\s+/);
  const type = kinds[kind];
  const bytes = Buffer.from(body, 'base64');
  // The blob repeats the key type, after its length.
  if (type === undefined || bytes.toString('latin1', 4, 4 + kind.length) !== kind) {
    throw new ApiError('InvalidKey.Format', 'Key is not in valid OpenSSH public key format', 400);
  }
  if ([...region.keys.values()].some((key) => key.name === name))
    throw new ApiError('InvalidKeyPair.Duplicate', 'The keypair already exists', 400);
  const fingerprint =
    type === 'ed25519' ? createHash('sha256').update(bytes).digest('base64') : colons(createHash('md5').update(bytes).digest('hex'));
  const tags = tagsFor(ec2, 'key-pair', input.TagSpecifications);
  const key: KeyRecord = {
    id: ec2.id('key'),
    visibleAt: ec2.visibleAt('key'),
    tags,
    name,
    type,
    publicKey,
    fingerprint,
    createdAt: ec2.now,
  };
  region.keys.set(key.id, key);
  return {
    KeyFingerprint: fingerprint,
    KeyName: name,
    KeyPairId: key.id,
    Tags: [...tags].map(([Key, { value }]) => ({ Key, Value: value })),
  };
}

function colons(hex: string): string {
  return hex.replaceAll(/(..)(?=.)/g, '$1:');
}

/** Key pairs by name, id or filter. */
export function describeKeyPairs(ec2: Ec2, input: DescribeKeyPairsRequest, { region: regionName }: Caller): DescribeKeyPairsResult {
  const visible = [...ec2.region(regionName).keys.values()].filter((key) => ec2.isVisible(key));
  const { KeyNames: names, KeyPairIds: ids, IncludePublicKey: withKey = false } = input;
  const chosen = visible.filter((key) => (names === undefined || names.includes(key.name)) && (ids === undefined || ids.includes(key.id)));
  const missing =
    names?.find((name) => !visible.some((key) => key.name === name)) ?? ids?.find((id) => !visible.some((key) => key.id === id));
  if (missing !== undefined) throw new ApiError('InvalidKeyPair.NotFound', `The key pair '${missing}' does not exist`, 400);
  const found = filtered(
    chosen,
    input.Filters,
    { 'key-name': (key) => key.name, 'key-pair-id': (key) => key.id, fingerprint: (key) => key.fingerprint },
    ec2.now,
  );
  return {
    KeyPairs: found.map((key) => ({
      KeyPairId: key.id,
      KeyName: key.name,
      KeyType: key.type,
      KeyFingerprint: key.fingerprint,
      CreateTime: new Date(key.createdAt),
      Tags: shownTags(key, ec2.now),
      ...(withKey ? { PublicKey: key.publicKey } : {}),
    })),
  };
}

/** Succeeds for an unknown name, as AWS does. */
export function deleteKeyPair(ec2: Ec2, input: DeleteKeyPairRequest, { region: regionName }: Caller): DeleteKeyPairResult {
  const region = ec2.region(regionName);
  const { KeyName: name, KeyPairId: id } = input;
  if (name === undefined && id === undefined)
    throw new ApiError('MissingParameter', 'The request must contain the parameter KeyName or KeyPairId', 400);
  const key = [...region.keys.values()].find((one) => (id === undefined ? one.name === name : one.id === id));
  if (key === undefined) return { Return: true };
  region.keys.delete(key.id);
  return { Return: true, KeyPairId: key.id };
}
