import { createHash, createHmac } from 'node:crypto';

/** The scope of a signature; `20300101/us-east-1/ec2/aws4_request` in a header. */
export interface Scope {
  /** Day in UTC, `yyyymmdd`. */
  readonly date: string;
  readonly region: string;
  readonly service: string;
}

/** The signed parts of a request. */
export interface CanonicalParts {
  readonly method: string;
  /** The path in its hashed form: encoded once for S3, twice for all other services. */
  readonly path: string;
  /** Decoded names and values, without the signature itself. */
  readonly query: readonly (readonly [name: string, value: string])[];
  /** The signed headers, names in lower case. */
  readonly headers: readonly (readonly [name: string, value: string])[];
  /** Hex SHA-256 of the body, or one of the reserved words. */
  readonly payloadHash: string;
}

/** Lower-case hex. */
export function sha256Hex(data: string | Uint8Array): string {
  return createHash('sha256').update(data).digest('hex');
}

/** Percent-encodes all characters but the unreserved ones of RFC 3986, in upper-case hex. */
export function encodeRfc3986(text: string): string {
  return encodeURIComponent(text).replaceAll(/[!'()*]/g, (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`);
}

function byCode(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

/**
 * Returns the string to sign.
 * https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv-create-signed-request.html
 */
export function canonicalRequest(parts: CanonicalParts): string {
  const query = parts.query
    .map(([name, value]) => [encodeRfc3986(name), encodeRfc3986(value)] as const)
    .toSorted(([a, x], [b, y]) => byCode(a, b) || byCode(x, y))
    .map(([name, value]) => `${name}=${value}`)
    .join('&');
  const headers = parts.headers.toSorted(([a], [b]) => byCode(a, b));
  const lines = headers.map(([name, value]) => `${name}:${value.trim().replaceAll(/ +/g, ' ')}\n`).join('');
  const names = headers.map(([name]) => name).join(';');
  return [parts.method, parts.path, query, lines, names, parts.payloadHash].join('\n');
}

/** `date` is the time of signing, `yyyymmddThhmmssZ`. */
export function stringToSign(date: string, scope: Scope, canonical: string): string {
  return ['AWS4-HMAC-SHA256', date, scopeText(scope), sha256Hex(canonical)].join('\n');
}

/** The scope as a credential has it, after the key's id. */
export function scopeText(scope: Scope): string {
  return `${scope.date}/${scope.region}/${scope.service}/aws4_request`;
}

function hmac(key: string | Uint8Array, text: string): Buffer {
  return createHmac('sha256', key).update(text, 'utf8').digest();
}

/** Derives the key of one day, region and service. */
export function signingKey(secret: string, scope: Scope): Buffer {
  return hmac(hmac(hmac(hmac(`AWS4${secret}`, scope.date), scope.region), scope.service), 'aws4_request');
}

/** Hex signature of a text. */
export function signature(key: Uint8Array, text: string): string {
  return hmac(key, text).toString('hex');
}

/** Formats a time as signatures have it, `yyyymmddThhmmssZ`. */
export function amzDate(ms: number): string {
  return new Date(ms).toISOString().replaceAll(/[-:]|\.\d{3}/g, '');
}

/** The inverse of `amzDate`, ms since the epoch; NaN for anything else. */
export function readAmzDate(text: string): number {
  const iso = text.replace(/^(\d{4})(\d{2})(\d{2})T(\d{2})(\d{2})(\d{2})Z$/, '$1-$2-$3T$4:$5:$6Z');
  return iso === text ? Number.NaN : Date.parse(iso);
}
