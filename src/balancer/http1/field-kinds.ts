/** How the engine treats a field, by its name alone. Numbers, because each field of each message is compared. */
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
  /** A proxy's report about its client; discarded when it comes from an untrusted client. */
  forwarding: 11,
  requestId: 12,
  /** `x-svc-*` other than `version`: only the balancer may set them. */
  own: 13,
  contentType: 14,
  retryAfter: 15,
  /** Equals a guarded name once underscores become dashes, as CGI and WSGI servers convert it. */
  forged: 16,
  /** The three forwarding fields that are rewritten for each replica. */
  forwardedFor: 17,
  forwardedProto: 18,
  forwardedHost: 19,
  traceparent: 20,
  /** `x-svc-version`: a client pins its request to a version, and a response names the version that answered. */
  version: 21,
  /** `Forwarded` (RFC 7239), which is extended like the three above. */
  forwarded: 22,
} as const;
/**
 * How the engine treats a field, decided by its name alone. Plain numbers, because each field of each message is
 * compared.
 */
export type FieldKind = (typeof FieldKind)[keyof typeof FieldKind];

/**
 * Fields in which proxies and content delivery networks name their client. Programs trust them, so they pass only from a
 * trusted proxy, like `X-Forwarded-*`. So do the two by which some servers choose another target than the request's own.
 */
const reportNames: readonly string[] = [
  'x-real-ip',
  'x-client-ip',
  'x-cluster-client-ip',
  'true-client-ip',
  'cf-connecting-ip',
  'fastly-client-ip',
  'fly-client-ip',
  'x-original-url',
  'x-rewrite-url',
];

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
  ['forwarded', FieldKind.forwarded],
  ['x-forwarded-for', FieldKind.forwardedFor],
  ['x-forwarded-proto', FieldKind.forwardedProto],
  ['x-forwarded-host', FieldKind.forwardedHost],
  ...reportNames.map((name) => [name, FieldKind.forwarding] as const),
  // CGI programs would take it for their own proxy setting (httpoxy, CVE-2016-5385).
  ['proxy', FieldKind.hopByHop],
  ['x-request-id', FieldKind.requestId],
  ['content-type', FieldKind.contentType],
  ['retry-after', FieldKind.retryAfter],
  ['traceparent', FieldKind.traceparent],
]);

/**
 * Framing, routing, credentials and the balancer's own fields: `Connection` may not remove them, and an underscore may
 * not imitate them.
 */
const guardedNames: ReadonlySet<string> = new Set([
  'host',
  'content-length',
  'transfer-encoding',
  'authorization',
  'proxy-authorization',
  'cookie',
  'set-cookie',
  'forwarded',
  ...reportNames,
  'x-request-id',
]);

/** Whether only the balancer, or only the sender itself, may set or remove a lower-case name. */
export function isGuardedName(name: string): boolean {
  return guardedNames.has(name) || name.startsWith('x-forwarded-') || name.startsWith('x-svc-');
}

interface SpecialName {
  readonly name: string;
  readonly kind: FieldKind;
}

const lengthBits = 5;
const maxIndexedLength = 1 << lengthBits;
const slotOf = (length: number, firstOctet: number): number => (length << lengthBits) | (firstOctet & 31);

/** By length and first letter: one check shows that most names are plain. A test ensures that no two share a slot. */
const slots: readonly (SpecialName | undefined)[] = (() => {
  const all = Array.from<SpecialName | undefined>({ length: maxIndexedLength << lengthBits });
  for (const [name, kind] of kindsByName) all[slotOf(name.length, name.charCodeAt(0))] = { name, kind };
  return all;
})();

/** The kind of the field named `text[from, to)`, in any case. `mayHaveUnderscore`: false when the text has none. */
export function fieldKindAt(text: string, from: number, to: number, mayHaveUnderscore: boolean): FieldKind {
  const length = to - from;
  const first = text.charCodeAt(from) | 0x20;
  const candidate = length < maxIndexedLength ? slots[slotOf(length, first)] : undefined;
  if (candidate !== undefined && hasPrefix(text, from, to, candidate.name)) return candidate.kind;
  if (first === letterX) {
    if (hasPrefix(text, from, to, 'x-forwarded-')) return FieldKind.forwarding;
    if (length === versionName.length && hasPrefix(text, from, to, versionName)) return FieldKind.version;
    if (hasPrefix(text, from, to, 'x-svc-')) return FieldKind.own;
  }
  return mayHaveUnderscore && isForged(text.slice(from, to)) ? FieldKind.forged : FieldKind.plain;
}

const letterX = 0x78;
const versionName = 'x-svc-version';

/** Ignores case: setting that bit changes only letters among the octets of names. */
function hasPrefix(text: string, from: number, to: number, lowerPrefix: string): boolean {
  if (to - from < lowerPrefix.length) return false;
  for (let index = 0; index < lowerPrefix.length; index += 1) {
    if ((text.charCodeAt(from + index) | 0x20) !== lowerPrefix.charCodeAt(index)) return false;
  }
  return true;
}

function isForged(name: string): boolean {
  return name.includes('_') && isGuardedName(name.toLowerCase().replaceAll('_', '-'));
}

/** In any case. */
export function fieldKind(name: string): FieldKind {
  return fieldKindAt(name, 0, name.length, true);
}

/**
 * Meaningless or dangerous after the body (RFC 9110, section 6.5.1): framing, routing, credentials, request modifiers,
 * response control and content format.
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

/** Whether a field may be forwarded in trailers. */
export function mayTrail(name: string): boolean {
  if (fieldKind(name) !== FieldKind.plain) return false;
  const lower = name.toLowerCase();
  return !isGuardedName(lower) && !forbiddenTrailers.has(lower) && !lower.startsWith('if-');
}
