/** What the engine does with a field, decided by its name alone. Plain numbers, because they are compared for each field of each message. */
export const FieldKind = {
  plain: 0,
  host: 1,
  contentLength: 2,
  transferEncoding: 3,
  connection: 4,
  /** Meant for the next peer only: never forwarded. */
  hopByHop: 5,
  keepAlive: 6,
  upgrade: 7,
  te: 8,
  trailer: 9,
  expect: 10,
  /** What a proxy says of its client; a client's own word for it is not taken. */
  forwarding: 11,
  requestId: 12,
  /** `x-svc-*`: said by the balancer alone. */
  own: 13,
  contentType: 14,
  retryAfter: 15,
  /** Reads as a guarded name once underscores become dashes, as CGI and WSGI servers do it. */
  forged: 16,
} as const;
export type FieldKind = (typeof FieldKind)[keyof typeof FieldKind];

const kindsByName: ReadonlyMap<string, FieldKind> = new Map<string, FieldKind>([
  ['host', FieldKind.host],
  ['content-length', FieldKind.contentLength],
  ['transfer-encoding', FieldKind.transferEncoding],
  ['connection', FieldKind.connection],
  ['keep-alive', FieldKind.keepAlive],
  ['proxy-connection', FieldKind.hopByHop],
  ['proxy-authenticate', FieldKind.hopByHop],
  ['proxy-authorization', FieldKind.hopByHop],
  ['http2-settings', FieldKind.hopByHop],
  ['upgrade', FieldKind.upgrade],
  ['te', FieldKind.te],
  ['trailer', FieldKind.trailer],
  ['expect', FieldKind.expect],
  ['forwarded', FieldKind.forwarding],
  ['x-request-id', FieldKind.requestId],
  ['content-type', FieldKind.contentType],
  ['retry-after', FieldKind.retryAfter],
]);

/** Names that neither `Connection` may remove nor an underscore may imitate: framing, routing, credentials, and what we say ourselves. */
const guardedNames: ReadonlySet<string> = new Set([
  'host',
  'content-length',
  'transfer-encoding',
  'authorization',
  'proxy-authorization',
  'cookie',
  'set-cookie',
  'forwarded',
  'x-request-id',
]);

/** Whether a lower-case name is one that only we, or only the sender itself, may set or remove. */
export function isGuardedName(name: string): boolean {
  return guardedNames.has(name) || name.startsWith('x-forwarded-') || name.startsWith('x-svc-');
}

function classify(name: string): FieldKind {
  const lower = name.toLowerCase();
  const known = kindsByName.get(lower);
  if (known !== undefined) return known;
  if (lower.startsWith('x-forwarded-')) return FieldKind.forwarding;
  if (lower.startsWith('x-svc-')) return FieldKind.own;
  if (lower.includes('_') && isGuardedName(lower.replaceAll('_', '-'))) return FieldKind.forged;
  return FieldKind.plain;
}

/** Peers send the same few spellings again and again; the bound keeps invented ones from filling memory. */
const maxRemembered = 512;
const remembered = new Map<string, FieldKind>();

/** The kind of a field by its name, in any case. */
export function fieldKind(name: string): FieldKind {
  const seen = remembered.get(name);
  if (seen !== undefined) return seen;
  const kind = classify(name);
  if (remembered.size < maxRemembered) remembered.set(name, kind);
  return kind;
}

const lengthBits = 5;
const maxIndexedLength = 1 << lengthBits;
const indexOfName = (length: number, firstOctet: number): number => (length << lengthBits) | (firstOctet & 31);

/** 1 for each pair of length and first letter that a name of a special kind has: the others need no closer look. */
const mayBeSpecial = new Uint8Array(maxIndexedLength << lengthBits);
for (const name of kindsByName.keys()) mayBeSpecial[indexOfName(name.length, name.charCodeAt(0))] = 1;
for (let length = 0; length < maxIndexedLength; length += 1) mayBeSpecial[indexOfName(length, 'x'.charCodeAt(0))] = 1;

/** `fieldKind` of `text[from, to)`. `hasUnderscore`: there is one somewhere in the text. Makes no string for most names. */
export function fieldKindAt(text: string, from: number, to: number, hasUnderscore: boolean): FieldKind {
  const first = text.charCodeAt(from);
  const length = to - from;
  const isLong = length >= maxIndexedLength;
  if (!hasUnderscore && (isLong ? (first | 0x20) !== 0x78 : mayBeSpecial[indexOfName(length, first)] === 0)) return FieldKind.plain;
  return fieldKind(text.slice(from, to));
}

/**
 * Fields that mean nothing, or something dangerous, after the body (RFC 9110, section 6.5.1): framing, routing, credentials,
 * request modifiers, response control and content format. They are dropped from trailers.
 */
const forbiddenTrailers: ReadonlySet<string> = new Set([
  'age',
  'cache-control',
  'content-encoding',
  'content-range',
  'date',
  'expires',
  'location',
  'max-forwards',
  'pragma',
  'range',
  'vary',
  'www-authenticate',
]);

/** Whether a field may be passed on when it came after the body. */
export function mayTrail(name: string): boolean {
  if (fieldKind(name) !== FieldKind.plain) return false;
  const lower = name.toLowerCase();
  return !isGuardedName(lower) && !forbiddenTrailers.has(lower) && !lower.startsWith('if-');
}
