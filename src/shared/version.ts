import { createHash } from 'node:crypto';
import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { isBundled, programFile } from './program-files.ts';

/** The version of this program, from its package file. */
export const svcVersion: string = readVersion();

function readVersion(): string {
  const { version }: { readonly version: string } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8'));
  return version;
}

/** Whether version `a` is older than `b`. Text after the third number, as in `1.0.0-rc.1`, is ignored. */
export function isOlderVersion(a: string, b: string): boolean {
  const [left, right] = [numbersOf(a), numbersOf(b)];
  const at = left.findIndex((number, index) => number !== right[index]);
  return at >= 0 && (left[at] ?? 0) < (right[at] ?? 0);
}

function numbersOf(version: string): readonly number[] {
  const [major = 0, minor = 0, patch = 0] = version.split(/[.+-]/).map((part) => Number.parseInt(part, 10) || 0);
  return [major, minor, patch];
}

/** Files of a checkout that affect how it runs; tests do not. */
const runs = /(?<!\.test)\.(ts|mjs|sh)$/;

let known: string | undefined;

/**
 * The program's version with a fingerprint of its code, such as `0.1.0+3f2a9c01d5e7`; equal for processes from the same
 * files. Computed at the first call (20 ms), so a process calls it at its start.
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

/** Twelve hex digits that identify the code of a checkout, with its prices. */
export function codeFingerprint(checkout: string): string {
  const source = readdirSync(join(checkout, 'src'), { recursive: true, encoding: 'utf8' }).filter((file) => runs.test(file));
  const hash = createHash('sha256').update(readFileSync(join(checkout, 'package-lock.json')));
  for (const file of readdirSync(join(checkout, 'catalog')).toSorted())
    hash.update(`\0${file}\0`).update(readFileSync(join(checkout, 'catalog', file)));
  for (const file of source.toSorted()) hash.update(`\0${file}\0`).update(readFileSync(join(checkout, 'src', file)));
  return hash.digest('hex').slice(0, 12);
}
