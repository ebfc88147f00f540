import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { isBundled, programFile } from './program-files.ts';
import { svcVersion } from './version.ts';

/** What of a checkout decides how it runs. Tests do not. */
const runs = /(?<!\.test)\.(ts|mjs|sh)$/;

let known: string | undefined;

/**
 * The version of this program with a fingerprint of its code, such as `0.1.0+3f2a9c01d5e7`: the same for two processes that were started from the
 * same files. It is of the moment it is first asked for, so a process asks at its start. Takes about 20 ms, once.
 */
export function codeVersion(): string {
  known ??= `${svcVersion}+${isBundled ? bundledFingerprint() : codeFingerprint(programFile('.'))}`;
  return known;
}

/** File of a bundle that holds the fingerprint of the checkout it was made from. */
export const fingerprintFile = 'fingerprint';

function bundledFingerprint(): string {
  return readFileSync(programFile(fingerprintFile), 'utf8').trim();
}

/** Twelve hex digits that tell the code of one checkout from that of another. */
export function codeFingerprint(checkout: string): string {
  const source = readdirSync(join(checkout, 'src'), { recursive: true, encoding: 'utf8' }).filter((file) => runs.test(file));
  const hash = createHash('sha256').update(readFileSync(join(checkout, 'package-lock.json')));
  for (const file of source.toSorted()) hash.update(`\0${file}\0`).update(readFileSync(join(checkout, 'src', file)));
  return hash.digest('hex').slice(0, 12);
}
