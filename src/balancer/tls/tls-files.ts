import { readFileSync, statSync } from 'node:fs';
import { tlsRefused } from '../../domain/balancer-link.ts';
import type { Clock } from '../../shared/clock.ts';
import { messageOf, SvcError } from '../../shared/errors.ts';
import { judgeClientCa, judgeTlsPair, type TlsFault } from '../../shared/system/tls-pair.ts';

/** The paths of the endpoint's files: PEM. */
interface TlsPaths {
  readonly keyFile: string;
  readonly certFile: string;
  /** Certificates of the authorities that clients need one of. */
  readonly clientCaFile?: string;
}

/** The key belongs to the certificate. */
export interface TlsMaterial {
  readonly key: string;
  readonly cert: string;
  /** Undefined when clients need no certificate; at least one certificate otherwise. */
  readonly clientCa?: string | undefined;
}

interface TlsFilesUser {
  /** The files hold a new pair that can be served. */
  renewed(material: TlsMaterial): void;
  /** The new files cannot be served; the old pair stays in force. `message` has no content of the files. */
  refused(message: string): void;
}

const pollIntervalMs = 2_000;

/** `notInForce`: why clients refuse the certificate at this time, though handshakes work. */
interface ReadTlsFiles {
  readonly material: TlsMaterial;
  readonly notInForce: string | undefined;
}

/**
 * Reads the files, then polls them for as long as the process lives. Throws SVC_BAD_CERTIFICATE, with the reason, when
 * no handshake could succeed. Polling detects every kind of replacement (overwritten, renamed onto, a changed link, as
 * by certbot and cert-manager): the path then leads to a different or newer file.
 */
export function watchTlsFiles(paths: TlsPaths, clock: Clock, user: TlsFilesUser): ReadTlsFiles {
  const files = [paths.keyFile, paths.certFile, paths.clientCaFile ?? []].flat();
  const signature = (): string => files.map(signatureOf).join(' ');
  let seen = signature();
  let loaded = seen;
  const first = readTlsFiles(paths, clock.now());
  clock.every(pollIntervalMs, () => {
    const current = signature();
    // A renewal replaces one file after the other, and each may be half written. Both are read once neither has changed
    // between two polls.
    const isSteady = current === seen;
    seen = current;
    if (!isSteady || current === loaded) return;
    loaded = current;
    try {
      user.renewed(renewedPair(paths, clock.now()));
    } catch (error) {
      user.refused(`${tlsRefused} ${messageOf(error)}`);
    }
  });
  return first;
}

/** An old certificate may have been copied over the valid one by mistake. The loaded one then stays in force. */
function renewedPair(paths: TlsPaths, now: number): TlsMaterial {
  const { material, notInForce } = readTlsFiles(paths, now);
  if (notInForce !== undefined) throw new Error(notInForce);
  return material;
}

function readTlsFiles(paths: TlsPaths, now: number): ReadTlsFiles {
  const clientCa = paths.clientCaFile === undefined ? undefined : readPem(paths.clientCaFile);
  const material = { key: readPem(paths.keyFile), cert: readPem(paths.certFile), clientCa };
  const { faults: pairFaults, notInForce } = judgeTlsPair(material.key, material.cert, now);
  // With an empty file, OpenSSL would accept certificates of all the authorities that it knows.
  const clientFault = clientCa === undefined ? undefined : judgeClientCa(clientCa);
  const faults = clientFault === undefined ? pairFaults : [...pairFaults, clientFault];
  if (faults.length > 0) throw badCertificate(faults.map((fault) => inWords(fault, paths)).join(' '));
  return { material, notInForce: notInForce === undefined ? undefined : inWords(notInForce, paths) };
}

function readPem(path: string): string {
  try {
    return readFileSync(path, 'latin1');
  } catch (error) {
    throw badCertificate(`${path} cannot be read: ${messageOf(error)}.`);
  }
}

const badCertificate = (why: string): SvcError => new SvcError('SVC_BAD_CERTIFICATE', why);

function inWords({ field, reason, hint }: TlsFault, { keyFile, certFile, clientCaFile = '' }: TlsPaths): string {
  const path = { keyfile: keyFile, certfile: certFile, client_ca: clientCaFile }[field];
  const isPair = reason.includes('keyfile');
  return `The ${field} ${path} ${reason}${isPair ? ` (keyfile: ${keyFile})` : ''}. ${hint}`;
}

/** Changes whenever the path leads to different content. */
function signatureOf(path: string): string {
  try {
    const { dev, ino, size, mtimeNs } = statSync(path, { bigint: true });
    return `${dev}:${ino}:${size}:${mtimeNs}`;
  } catch {
    // Between two renames the file may be missing for a moment.
    return 'absent';
  }
}
