import { timingSafeEqual } from 'node:crypto';
import type { AccessKey, KeyRing } from './key-ring.ts';
import { canonicalRequest, encodeRfc3986, readAmzDate, scopeText, signature, signingKey, stringToSign, type Scope } from './signature.ts';

/** An unverified request. `target` is path and query as received. */
export interface UnverifiedRequest {
  readonly method: string;
  readonly target: string;
  readonly header: (name: string) => string | undefined;
}

/** Reasons to refuse a signature; each service has its own code for each. */
export type SignatureProblem =
  | 'missing'
  | 'malformed'
  | 'unknown-key'
  | 'bad-token'
  | 'expired-token'
  | 'skewed'
  | 'mismatch'
  | 'expired-url';

/** A request without a valid signature of a known key. */
export class SignatureError extends Error {
  override readonly name = 'SignatureError';
  readonly problem: SignatureProblem;

  constructor(problem: SignatureProblem, message: string) {
    super(message);
    this.problem = problem;
  }
}

/**
 * Content of a verified signature. The last fields serve to verify the chunks of a body, which are signed separately.
 */
export interface Verified {
  readonly key: AccessKey;
  readonly scope: Scope;
  readonly signature: string;
  readonly signingKey: Uint8Array;
  readonly date: string;
  readonly presigned: boolean;
}

/**
 * Both clocks, ms since the epoch: `signing` checks dates that the SDK writes, `sessions` checks the expiry of
 * sessions.
 */
export interface VerifyTimes {
  readonly signing: number;
  readonly sessions: number;
}

interface Claim {
  readonly accessKeyId: string;
  readonly scope: Scope;
  readonly signedHeaders: readonly string[];
  readonly signature: string;
  readonly date: string;
  readonly token: string | undefined;
  /** Of a presigned URL, seconds. */
  readonly expires: number | undefined;
}

/** Allowed clock skew, as at AWS. */
const skewMs = 15 * 60_000;
const maxUrlSeconds = 7 * 24 * 3_600;

/**
 * Verifies a signature in the header or in the query; throws `SignatureError`. `payloadHash` returns the hash that the
 * signer used for the body.
 */
export function verifyRequest(request: UnverifiedRequest, payloadHash: string, keys: KeyRing, times: VerifyTimes): Verified {
  const query = queryOf(request.target);
  const claim = request.header('authorization') === undefined ? claimOfQuery(query) : claimOfHeader(request);
  const key = keys.find(claim.accessKeyId);
  if (key === undefined) throw new SignatureError('unknown-key', `There is no access key ${claim.accessKeyId}.`);
  checkTimes(claim, times);
  const secret = signingKey(key.secretAccessKey, claim.scope);
  const path = request.target.split('?', 1)[0] ?? '/';
  const canonical = canonicalRequest({
    method: request.method,
    path: claim.scope.service === 's3' ? encodePath(decodePath(path)) : encodePath(path),
    query: query.filter(([name]) => name !== 'X-Amz-Signature'),
    headers: claim.signedHeaders.map((name) => [name, request.header(name) ?? ''] as const),
    payloadHash: claim.expires === undefined ? payloadHash : 'UNSIGNED-PAYLOAD',
  });
  const expected = signature(secret, stringToSign(claim.date, claim.scope, canonical));
  if (!sameText(expected, claim.signature)) {
    throw new SignatureError('mismatch', `The request signature we calculated does not match the signature you provided.`);
  }
  checkToken(key, claim, times);
  return {
    key,
    scope: claim.scope,
    signature: claim.signature,
    signingKey: secret,
    date: claim.date,
    presigned: claim.expires !== undefined,
  };
}

function sameText(a: string, b: string): boolean {
  return a.length === b.length && timingSafeEqual(Buffer.from(a), Buffer.from(b));
}

function checkTimes(claim: Claim, times: VerifyTimes): void {
  const signedAt = readAmzDate(claim.date);
  if (Number.isNaN(signedAt) || !claim.date.startsWith(claim.scope.date))
    throw new SignatureError('malformed', 'The date of signing is wrong.');
  if (signedAt - times.signing > skewMs) throw new SignatureError('skewed', `Signature not yet current: ${claim.date}`);
  if (claim.expires === undefined) {
    if (times.signing - signedAt > skewMs) throw new SignatureError('skewed', `Signature expired: ${claim.date}`);
  } else if (times.signing > signedAt + claim.expires * 1_000) throw new SignatureError('expired-url', 'Request has expired');
}

function checkToken(key: AccessKey, claim: Claim, times: VerifyTimes): void {
  if (key.sessionToken !== claim.token) throw new SignatureError('bad-token', 'The security token included in the request is invalid');
  if (key.expiresAt !== undefined && times.sessions >= key.expiresAt) {
    throw new SignatureError('expired-token', 'The security token included in the request is expired');
  }
}

function queryOf(target: string): [string, string][] {
  const start = target.indexOf('?');
  return start === -1 ? [] : [...new URLSearchParams(target.slice(start + 1).replaceAll('+', '%2B'))];
}

function encodePath(path: string): string {
  return path.split('/').map(encodeRfc3986).join('/');
}

function decodePath(path: string): string {
  try {
    return decodeURIComponent(path);
  } catch {
    throw new SignatureError('malformed', 'The path is not well encoded.');
  }
}

function credentialOf(text: string): { readonly accessKeyId: string; readonly scope: Scope } {
  const [accessKeyId, date, region, service, terminator, ...more] = text.split('/');
  if (!accessKeyId || !date || !region || !service || terminator !== 'aws4_request' || more.length > 0) {
    throw new SignatureError(
      'malformed',
      `The credential is malformed; expecting "<key>/${scopeText({ date: 'YYYYMMDD', region: 'REGION', service: 'SERVICE' })}".`,
    );
  }
  return { accessKeyId, scope: { date, region, service } };
}

function claimOfHeader(request: UnverifiedRequest): Claim {
  const match = /^AWS4-HMAC-SHA256\s+Credential=([^,\s]+)\s*,\s*SignedHeaders=([^,\s]+)\s*,\s*Signature=([\da-f]{64})$/.exec(
    request.header('authorization') ?? '',
  );
  const [, credential, headers, given] = match ?? [];
  const date = request.header('x-amz-date');
  if (credential === undefined || headers === undefined || given === undefined || date === undefined) {
    throw new SignatureError('malformed', 'The authorization header is malformed.');
  }
  const signedHeaders = headers.split(';');
  if (!signedHeaders.includes('host')) throw new SignatureError('malformed', 'The host is not among the signed headers.');
  return {
    ...credentialOf(credential),
    signedHeaders,
    signature: given,
    date,
    token: request.header('x-amz-security-token'),
    expires: undefined,
  };
}

function claimOfQuery(query: readonly (readonly [string, string])[]): Claim {
  const values = new Map(query);
  const credential = values.get('X-Amz-Credential');
  if (credential === undefined) throw new SignatureError('missing', 'The request is not signed.');
  const expires = Number(values.get('X-Amz-Expires'));
  const signedHeaders = (values.get('X-Amz-SignedHeaders') ?? '').split(';');
  const algorithm = values.get('X-Amz-Algorithm');
  if (algorithm !== 'AWS4-HMAC-SHA256' || !(expires >= 1 && expires <= maxUrlSeconds) || !signedHeaders.includes('host')) {
    throw new SignatureError('malformed', 'The signing parameters of the query are incomplete.');
  }
  return {
    ...credentialOf(credential),
    signedHeaders,
    signature: values.get('X-Amz-Signature') ?? '',
    date: values.get('X-Amz-Date') ?? '',
    token: values.get('X-Amz-Security-Token'),
    expires,
  };
}
