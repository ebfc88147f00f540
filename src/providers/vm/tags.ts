import { ProviderRefusal } from '../provider-refusal.ts';
import type { MachineSpec } from '../provider.ts';

/** These names never change: the documented rights allow removal only of resources with `svc.home`. */
export const ownTags = {
  /** A home never changes another home's resources. */
  home: 'svc.home',
  /** See `ownerOf`. */
  owner: 'svc.owner',
  /** The machine's idempotency key. */
  key: 'svc.key',
  /** The login user. */
  user: 'svc.user',
} as const;

/** Tags by name. */
export type Tags = Readonly<Record<string, string>>;

/** The unit of release: a service, or a single machine without one. */
export function ownerOf(spec: Pick<MachineSpec, 'tags'>, key: string): string {
  return spec.tags['svc-service-key'] ?? spec.tags['svc-key'] ?? key;
}

/** The machine's name for users: `chat-1`. */
export function displayName({ tags }: Pick<MachineSpec, 'tags'>): string {
  return [tags['svc-service'] ?? tags['svc-cluster'] ?? 'svc', tags['svc-replica']].filter(Boolean).join('-');
}

/** Tags of resources that an owner's machines share; without an owner, that all machines of a home share. */
export function sharedTags(home: string, owner: string | undefined): Tags {
  return { [ownTags.home]: home, ...(owner === undefined ? {} : { [ownTags.owner]: owner }) };
}

/** A label never replaces a tag by which a machine is found. */
export function machineTags(spec: Pick<MachineSpec, 'tags' | 'labels'>, key: string, home: string, user: string): Tags {
  return { ...spec.labels, ...spec.tags, ...sharedTags(home, ownerOf(spec, key)), [ownTags.key]: key, [ownTags.user]: user };
}

/** The tags that callers set, which all begin with `svc-`. */
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

/** The inverse of `writeTags`. */
export function readTags(stored: Tags, alphabet: LabelAlphabet): Tags {
  if (alphabet === 'any') return stored;
  return Object.fromEntries(Object.entries(stored).map(([name, value]) => [decodeLabel(name), decodeLabel(value)]));
}

/** `_` and bytes outside the alphabet become `_` and two hex digits. */
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
