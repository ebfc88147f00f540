import { createPrivateKey, X509Certificate, type KeyObject } from 'node:crypto';
import { createSecureContext } from 'node:tls';
import { isoTime } from '../clock.ts';
import { messageOf } from '../errors.ts';

/** Why TLS files cannot be served. Never contains content of the files. */
export interface TlsFault {
  readonly field: 'keyfile' | 'certfile' | 'client_ca';
  readonly reason: string;
  readonly hint: string;
}

interface TlsPairVerdict {
  /** Each would fail every handshake. */
  readonly faults: readonly TlsFault[];
  /** Handshakes succeed, but clients refuse the certificate: it has expired or is not valid yet. */
  readonly notInForce: TlsFault | undefined;
  /** A sentence for users when the certificate expires soon. */
  readonly warning: string | undefined;
  /** `asymmetricKeyType` of the key, such as `rsa` or `ec`; undefined with a fault. */
  readonly keyType: string | undefined;
}

/** Remaining validity below which svc warns about the certificate, ms. Automatic renewal is long overdue by then. */
const nearEndMs = 14 * 86_400_000;

const certificateBegin = '-----BEGIN CERTIFICATE-----';
/** OpenSSL serves the first certificate of a file, also under its older labels. */
const pemCertificate = /-----BEGIN (?<label>(?:X509 |TRUSTED )?CERTIFICATE)-----[^-]+-----END \k<label>-----/g;
const pemBegin = /-----BEGIN (?:X509 |TRUSTED )?CERTIFICATE-----/g;

/** Whether a key and a certificate chain (file contents) can be served at the time `now` (ms since the epoch). */
export function judgeTlsPair(keyText: string, chainText: string, now: number): TlsPairVerdict {
  const key = readKey(keyText);
  const chain = readChain(chainText);
  if ('reason' in key || 'reason' in chain) return refused([key, chain].filter((each) => 'reason' in each));
  const [leaf] = chain;
  // OpenSSL compares a certificate and a key only if both have one type. Other pairs would fail at each handshake.
  const fault = mismatch(key.key, leaf, chain) ?? refusedByOpenssl(keyText, chainText);
  if (fault !== undefined) return refused([fault]);
  const ends = endOf(leaf);
  const notInForce = timeFault(leaf, now);
  const isNearEnd = notInForce === undefined && ends - now < nearEndMs;
  const warning = isNearEnd ? `The certificate of the endpoint ends on ${isoTime(ends)}.` : undefined;
  return { faults: [], notInForce, warning, keyType: key.key.asymmetricKeyType };
}

/**
 * Why a file (its content) has no certificates that OpenSSL could compare those of clients with. OpenSSL accepts a client
 * only if its chain ends in a certificate that signs itself. Node's servers cannot change that.
 */
export function judgeClientCa(text: string): TlsFault | undefined {
  const field = 'client_ca';
  const certificates = readChain(text, field);
  if ('reason' in certificates) return certificates;
  if (certificates.some((one) => endsInRoot(one, certificates))) return undefined;
  const issuer = certificates[0].issuer.replaceAll('\n', ',');
  const hint = 'Add the certificate of the root authority to the file; then clients of each authority below it may connect.';
  return { field, reason: `lacks the certificate of the authority that issued its own (${issuer}), so no client could connect`, hint };
}

function endsInRoot(certificate: X509Certificate, others: readonly X509Certificate[]): boolean {
  // OpenSSL asks no `keyCertSign` of a trusted certificate that signs itself; `checkIssued` does.
  if (certificate.subject === certificate.issuer && certificate.verify(certificate.publicKey)) return true;
  const rest = others.filter((one) => one !== certificate);
  return rest.some((one) => certificate.checkIssued(one) && endsInRoot(one, rest));
}

const refused = (faults: readonly TlsFault[]): TlsPairVerdict => ({
  faults,
  notInForce: undefined,
  warning: undefined,
  keyType: undefined,
});

const copyAgain = 'Copy it again from where it was made.';

function readKey(text: string): { readonly key: KeyObject } | TlsFault {
  const field = 'keyfile';
  try {
    return { key: createPrivateKey(text) };
  } catch {
    // OpenSSL's message names routines, not causes.
    if (text.trim() === '') return { field, reason: 'is empty', hint: copyAgain };
    if (!text.includes('PRIVATE KEY'))
      return { field, reason: 'is not a private key in PEM', hint: 'A private key begins with: -----BEGIN PRIVATE KEY-----' };
    if (text.includes('ENCRYPTED'))
      return { field, reason: 'is locked with a passphrase', hint: 'Write it without one: openssl pkey -in KEY -out NEW_KEY' };
    return { field, reason: 'is a damaged private key', hint: copyAgain };
  }
}

type Chain = readonly [X509Certificate, ...X509Certificate[]];

function readChain(text: string, field: TlsFault['field'] = 'certfile'): Chain | TlsFault {
  if (text.trim() === '') return { field, reason: 'is empty', hint: copyAgain };
  const pieces = text.match(pemCertificate) ?? [];
  const [first, ...rest] = pieces;
  const isCutOff = (text.match(pemBegin) ?? []).length > pieces.length;
  if (first === undefined && !isCutOff)
    return { field, reason: 'is not a certificate in PEM', hint: `A certificate begins with: ${certificateBegin}` };
  if (first === undefined || isCutOff) return { field, reason: 'ends in the middle of a certificate', hint: copyAgain };
  try {
    return [new X509Certificate(first), ...rest.map((piece) => new X509Certificate(piece))];
  } catch {
    return { field, reason: 'has a damaged certificate', hint: copyAgain };
  }
}

function mismatch(key: KeyObject, leaf: X509Certificate, chain: Chain): TlsFault | undefined {
  const field = 'certfile';
  if (leaf.checkPrivateKey(key)) return undefined;
  if (chain.some((certificate) => certificate.checkPrivateKey(key)))
    return { field, reason: 'begins with the certificate of an authority', hint: "Put the server's own certificate first." };
  const [certified, own] = [leaf.publicKey.asymmetricKeyType, key.asymmetricKeyType];
  const types = certified === own ? '' : `: it certifies a key of type ${certified}, and that key is of type ${own}`;
  return { field, reason: `is not the certificate of the key in keyfile${types}`, hint: 'Name the key that the certificate was made for.' };
}

function timeFault(leaf: X509Certificate, now: number): TlsFault | undefined {
  const begins = leaf.validFromDate.getTime();
  if (begins > now) return { field: 'certfile', reason: `is not good before ${isoTime(begins)}`, hint: "Check this machine's clock." };
  return endOf(leaf) <= now
    ? { field: 'certfile', reason: `is good no longer: it ended on ${isoTime(endOf(leaf))}`, hint: 'Renew the certificate.' }
    : undefined;
}

const endOf = (certificate: X509Certificate): number => certificate.validToDate.getTime();

/** Detects other faults, such as a key that is too weak. Clients would only see a failed handshake. */
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
