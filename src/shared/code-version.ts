import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { isBundled, programFile } from './program-files.ts';
import { svcVersion } from './version.ts';

/** Files of a checkout that affect how it runs; tests do not. */
const runs = /(?<!\.test)\.(ts|mjs|sh)$/;

let known: string | undefined;

/**
 * The program's version with a fingerprint of its code, such as `0.1.0+3f2a9c01d5e7`. Two processes started from the
 * same files have the same value.
 * It is computed at the first call, so a process calls it at its start. Takes about 20 ms, once.
 */
export function codeVersion(): string {
  known ??= `${svcVersion}+${isBundled ? bundledFingerprint() : codeFingerprint(programFile('.'))}`;
  return known;
}

/** File in a bundle with the fingerprint of the checkout from which the bundle was built. */
export const fingerprintFile = 'fingerprint';

function bundledFingerprint(): string {
  return readFileSync(programFile(fingerprintFile), 'utf8').trim();
}

/** Twelve hex digits that identify the code of a checkout. */
export function codeFingerprint(checkout: string): string {
  const source = readdirSync(join(checkout, 'src'), { recursive: true, encoding: 'utf8' }).filter((file) => runs.test(file));
  const hash = createHash('sha256').update(readFileSync(join(checkout, 'package-lock.json')));
  for (const file of source.toSorted()) hash.update(`\0${file}\0`).update(readFileSync(join(checkout, 'src', file)));
  return hash.digest('hex').slice(0, 12);
}
