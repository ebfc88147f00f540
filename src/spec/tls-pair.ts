import { createPrivateKey, X509Certificate, type KeyObject } from 'node:crypto';
import { createSecureContext } from 'node:tls';
import { isoTime } from '../shared/clock.ts';
import { messageOf } from '../shared/errors.ts';

/** Why a key and a certificate cannot serve. Nothing of what the files hold is in it. */
export interface TlsFault {
  readonly field: 'keyfile' | 'certfile';
  readonly reason: string;
  readonly hint: string;
}

/** What was found of a key and a certificate. */
export interface TlsPairVerdict {
  readonly faults: readonly TlsFault[];
  /** A sentence for people when the certificate ends soon. */
  readonly warning: string | undefined;
}

/** Time before the end of a certificate from which on it is told of, ms: automatic renewal has long been due by then. */
const nearEndMs = 14 * 86_400_000;

const pemCertificate = /-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g;

/** Whether a key and a chain of certificates, as the text of their files, can serve at the time `now` (ms since the epoch). */
export function judgeTlsPair(keyText: string, chainText: string, now: number): TlsPairVerdict {
  const key = readKey(keyText);
  const chain = readChain(chainText);
  const faults = [key, chain].filter((each) => 'reason' in each);
  if ('reason' in key || 'reason' in chain) return { faults, warning: undefined };
  const [leaf] = chain.certificates;
  const pairFault = leaf === undefined ? undefined : (mismatch(key.key, leaf, chain.certificates) ?? notInForce(leaf, now));
  if (leaf === undefined || pairFault !== undefined) return { faults: pairFault === undefined ? [] : [pairFault], warning: undefined };
  const refused = refusedByOpenssl(keyText, chainText);
  if (refused !== undefined) return { faults: [refused], warning: undefined };
  const ends = endOf(leaf);
  const warning = ends - now < nearEndMs ? `The certificate of the endpoint ends on ${isoTime(ends)}.` : undefined;
  return { faults: [], warning };
}

function readKey(text: string): { readonly key: KeyObject } | TlsFault {
  const field = 'keyfile';
  try {
    return { key: createPrivateKey(text) };
  } catch {
    // What OpenSSL says of it names routines, not reasons.
    if (!text.includes('PRIVATE KEY'))
      return { field, reason: 'is not a private key in PEM', hint: 'A private key begins with: -----BEGIN PRIVATE KEY-----' };
    if (text.includes('ENCRYPTED'))
      return { field, reason: 'is locked with a passphrase', hint: 'Write it without one: openssl pkey -in KEY -out NEW_KEY' };
    return { field, reason: 'is a damaged private key', hint: 'Copy it again from where it was made.' };
  }
}

function readChain(text: string): { readonly certificates: readonly X509Certificate[] } | TlsFault {
  const field = 'certfile';
  const pieces = text.match(pemCertificate) ?? [];
  if (pieces.length === 0)
    return { field, reason: 'is not a certificate in PEM', hint: 'A certificate begins with: -----BEGIN CERTIFICATE-----' };
  try {
    return { certificates: pieces.map((piece) => new X509Certificate(piece)) };
  } catch {
    // As above.
    return { field, reason: 'has a damaged certificate', hint: 'Copy it again from where it was made.' };
  }
}

function mismatch(key: KeyObject, leaf: X509Certificate, chain: readonly X509Certificate[]): TlsFault | undefined {
  if (leaf.checkPrivateKey(key)) return undefined;
  const isLater = chain.some((certificate) => certificate.checkPrivateKey(key));
  return isLater
    ? { field: 'certfile', reason: 'begins with the certificate of an authority', hint: "Put the server's own certificate first." }
    : {
        field: 'certfile',
        reason: 'is not the certificate of the key in keyfile',
        hint: 'Name the key that the certificate was made for.',
      };
}

function notInForce(leaf: X509Certificate, now: number): TlsFault | undefined {
  const begins = leaf.validFromDate.getTime();
  if (begins > now) return { field: 'certfile', reason: `is not good before ${isoTime(begins)}`, hint: "Check this machine's clock." };
  return endOf(leaf) <= now
    ? { field: 'certfile', reason: `is good no longer: it ended on ${isoTime(endOf(leaf))}`, hint: 'Renew the certificate.' }
    : undefined;
}

const endOf = (certificate: X509Certificate): number => certificate.validToDate.getTime();

/** What else is wrong, such as a key that is too weak: clients would only see that the handshake fails. */
function refusedByOpenssl(key: string, cert: string): TlsFault | undefined {
  try {
    createSecureContext({ key, cert });
    return undefined;
  } catch (error) {
    return {
      field: 'certfile',
      reason: `cannot be served: ${messageOf(error)}`,
      hint: 'Make a key and a certificate that OpenSSL accepts.',
    };
  }
}
