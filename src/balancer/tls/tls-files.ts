import { X509Certificate } from 'node:crypto';
import { readFileSync, statSync } from 'node:fs';
import { createSecureContext } from 'node:tls';
import type { Clock } from '../../shared/clock.ts';
import { messageOf } from '../../shared/errors.ts';

/** Where the key and the certificate chain of the endpoint are: PEM. */
export interface TlsPaths {
  readonly keyFile: string;
  readonly certFile: string;
}

/** What was read from them; fits together. */
export interface TlsMaterial {
  readonly key: Buffer;
  readonly cert: Buffer;
}

/** Whom to tell. */
export interface TlsFilesUser {
  /** Both files are new, and fit together. */
  renewed(material: TlsMaterial): void;
  /** The new files cannot be used; the old ones stay in force. Says why, without anything of their content. */
  broken(message: string): void;
}

const lookEveryMs = 2_000;

/**
 * Follows the files, for as long as the process lives, by looking at them every few seconds: whatever way they are replaced (written over, renamed
 * onto, a link turned round, as certbot and cert-manager do), what a path leads to is another file then, or a younger one.
 */
export function followTlsFiles(paths: TlsPaths, clock: Clock, user: TlsFilesUser): void {
  const { keyFile, certFile } = paths;
  const signature = (): string => [keyFile, certFile].map(signatureOf).join(' ');
  let seen = signature();
  let loaded = seen;
  clock.every(lookEveryMs, () => {
    const current = signature();
    // Still being written, or only one of the two is there yet: it is read once it has not changed from one look to the next.
    const isSteady = current === seen;
    seen = current;
    if (!isSteady || current === loaded) return;
    loaded = current;
    try {
      const material = readTlsFiles(paths);
      // The one in force may be good for longer: whoever copied an old one over it has made a mistake.
      if (Date.parse(new X509Certificate(material.cert).validTo) <= clock.now()) throw new Error('the certificate has expired');
      user.renewed(material);
    } catch (error) {
      user.broken(`The new TLS files cannot be used, the old ones stay in force: ${messageOf(error)} (${certFile}, ${keyFile})`);
    }
  });
}

/** Reads both files. Throws what the system, or OpenSSL, says about them. */
export function readTlsFiles({ keyFile, certFile }: TlsPaths): TlsMaterial {
  const material = { key: readFileSync(keyFile), cert: readFileSync(certFile) };
  createSecureContext(material);
  return material;
}

/** Changes whenever the path leads to another content. */
function signatureOf(path: string): string {
  try {
    const { dev, ino, size, mtimeNs } = statSync(path, { bigint: true });
    return `${dev}:${ino}:${size}:${mtimeNs}`;
  } catch {
    // Between two renames it may be gone for a moment.
    return 'absent';
  }
}
