import { ProviderRefusal } from '../provider-refusal.ts';
import type { MachineSpec } from '../provider.ts';

/**
 * The provider's own tags; its callers' begin with `svc-`. These names never change: the documented rights allow
 * removal only of resources with `svc.home`.
 */
export const ownTags = {
  /** A home never changes another home's resources. */
  home: 'svc.home',
  /** For `release`. */
  owner: 'svc.owner',
  /** A machine's idempotency key. */
  key: 'svc.key',
  /** Login user. */
  user: 'svc.user',
} as const;

/** Tags by name. */
export type Tags = Readonly<Record<string, string>>;

/** The unit of release: a service, or a machine without one. */
export function ownerOf(spec: Pick<MachineSpec, 'tags'>, key: string): string {
  return spec.tags['svc-service-key'] ?? spec.tags['svc-key'] ?? key;
}

/** For users: `chat-1`. */
export function displayName({ tags }: Pick<MachineSpec, 'tags'>): string {
  return [tags['svc-service'] ?? tags['svc-cluster'] ?? 'svc', tags['svc-replica']].filter(Boolean).join('-');
}

/** Tags that an owner's machines share; without an owner, all machines of a home. */
export function sharedTags(home: string, owner: string | undefined): Tags {
  return { [ownTags.home]: home, ...(owner === undefined ? {} : { [ownTags.owner]: owner }) };
}

/** Tags of a machine and its parts. Labels never replace the tags that find it. */
export function machineTags(spec: Pick<MachineSpec, 'tags' | 'labels'>, key: string, home: string, user: string): Tags {
  return { ...spec.labels, ...spec.tags, ...sharedTags(home, ownerOf(spec, key)), [ownTags.key]: key, [ownTags.user]: user };
}

/** A machine's tags that are its callers'. */
export function callersTags(tags: Tags): Tags {
  return Object.fromEntries(Object.entries(tags).filter(([name]) => name.startsWith('svc-')));
}

/** `lower-case`: at most 63 of the letters a to z, digits, `-` and `_`, as in GCP's labels. */
export type LabelAlphabet = 'any' | 'lower-case';

const longestLabel = 63;

/** Encodes tags for the cloud; `readTags` decodes them. */
export function writeTags(tags: Tags, alphabet: LabelAlphabet): Tags {
  if (alphabet === 'any') return tags;
  return Object.fromEntries(Object.entries(tags).map(([name, value]) => [encodeLabel(name), encodeLabel(value)]));
}

/** Decodes tags that `writeTags` encoded. */
export function readTags(stored: Tags, alphabet: LabelAlphabet): Tags {
  if (alphabet === 'any') return stored;
  return Object.fromEntries(Object.entries(stored).map(([name, value]) => [decodeLabel(name), decodeLabel(value)]));
}

/** Other bytes than the alphabet's, and `_` itself, become `_` and two hex digits. */
function encodeLabel(text: string): string {
  const bytes = [...Buffer.from(text)].map((byte) => {
    const letter = String.fromCodePoint(byte);
    return /[a-z0-9-]/.test(letter) ? letter : `_${byte.toString(16).padStart(2, '0')}`;
  });
  const label = bytes.join('');
  if (label.length <= longestLabel) return label;
  throw new ProviderRefusal('unsupported', 'provider', `'${text}' is too long for a label there: at most ${longestLabel} characters.`, {
    hint: 'Shorten it under labels in the file. Characters other than a to z, 0 to 9 and - count as three.',
  });
}

function decodeLabel(label: string): string {
  const hex = label.replaceAll(/_([0-9a-f]{2})|([^])/g, (_, code?: string, letter?: string) =>
    code === undefined ? Buffer.from(letter ?? '').toString('hex') : code,
  );
  return Buffer.from(hex, 'hex').toString();
}
