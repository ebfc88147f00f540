import { createSign, generateKeyPairSync } from 'node:crypto';

/** A private key and its certificate, as PEM text. */
export interface KeyAndCertificate {
  readonly key: string;
  readonly cert: string;
}

/** Content of a certificate; times in ms since the epoch. */
export interface CertificateOptions {
  readonly notBefore?: number;
  readonly notAfter?: number;
  /** Bits of an RSA key; default: a P-256 key. */
  readonly rsaBits?: number;
  /** Default: `localhost`. */
  readonly subject?: string;
  /** It may sign other certificates. */
  readonly isAuthority?: boolean;
  /** Its key may sign handshakes, but no certificate (keyUsage). */
  readonly isForHandshakes?: boolean;
  /** The signing authority, with a P-256 key. Default: the certificate signs itself. */
  readonly issuer?: KeyAndCertificate & { readonly subject: string };
}

// Object identifiers, encoded: ecdsa-with-SHA256, sha256WithRSAEncryption with its NULL, commonName, subjectAltName.
const ecdsaSha256 = Buffer.from('06082a8648ce3d040302', 'hex');
const rsaSha256 = Buffer.from('06092a864886f70d01010b0500', 'hex');
const commonName = Buffer.from('0603550403', 'hex');
const subjectAltName = Buffer.from('0603551d11', 'hex');
/** The extension basicConstraints, critical, with the value "may sign". */
const mayCertify = Buffer.from('300f0603551d130101ff040530030101ff', 'hex');

/** The extension keyUsage, critical, with the value digitalSignature. */
const forHandshakes = Buffer.from('300e0603551d0f0101ff040403020780', 'hex');
const nothing = Buffer.alloc(0);

/** A value of DER (X.690): its tag, its length, its content. */
function der(tag: number, ...content: readonly Uint8Array[]): Buffer {
  const body = Buffer.concat(content);
  const length = body.length < 128 ? [body.length] : [0x82, body.length >> 8, body.length & 0xff];
  return Buffer.concat([Buffer.from([tag, ...length]), body]);
}

const sequence = (...content: readonly Uint8Array[]): Buffer => der(0x30, ...content);
const time = (ms: number): Buffer => der(0x18, Buffer.from(`${new Date(ms).toISOString().replaceAll(/\D/g, '').slice(0, 14)}Z`));

const nameOf = (subject: string): Buffer => sequence(der(0x31, sequence(commonName, der(0x0c, Buffer.from(subject)))));

function pem(label: string, content: Buffer): string {
  const lines = content.toString('base64').replaceAll(/(.{64})/g, '$1\n');
  return `-----BEGIN ${label}-----\n${lines.trimEnd()}\n-----END ${label}-----\n`;
}

/**
 * A new key and its certificate for `localhost` and 127.0.0.1. By default it signs itself and is valid for all times
 * that occur in tests.
 */
export function selfSigned({
  notBefore = Date.UTC(2000),
  notAfter = Date.UTC(2200),
  rsaBits,
  subject = 'localhost',
  isAuthority = false,
  isForHandshakes = false,
  issuer,
}: CertificateOptions = {}): KeyAndCertificate {
  const isRsa = rsaBits !== undefined;
  const pair = isRsa ? generateKeyPairSync('rsa', { modulusLength: rsaBits }) : generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const { privateKey, publicKey } = pair;
  const algorithm = sequence(isRsa && issuer === undefined ? rsaSha256 : ecdsaSha256);
  const names = sequence(der(0x82, Buffer.from('localhost')), der(0x87, Buffer.from([127, 0, 0, 1])));
  const signed = sequence(
    der(0xa0, der(0x02, Buffer.from([2]))),
    der(0x02, Buffer.from([1])),
    algorithm,
    nameOf(issuer?.subject ?? subject),
    sequence(time(notBefore), time(notAfter)),
    nameOf(subject),
    publicKey.export({ type: 'spki', format: 'der' }),
    der(
      0xa3,
      sequence(sequence(subjectAltName, der(0x04, names)), isAuthority ? mayCertify : nothing, isForHandshakes ? forHandshakes : nothing),
    ),
  );
  const signature = createSign('sha256')
    .update(signed)
    .sign(issuer?.key ?? privateKey);
  const certificate = sequence(signed, algorithm, der(0x03, Buffer.from([0]), signature));
  return { key: privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(), cert: pem('CERTIFICATE', certificate) };
}
