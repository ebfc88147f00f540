import { readFileSync } from 'node:fs';

/** The version of this program, from its package file. */
export const svcVersion: string = readVersion();

function readVersion(): string {
  const { version }: { readonly version: string } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8'));
  return version;
}
