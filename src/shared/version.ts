import { readFileSync } from 'node:fs';
import { programFile } from './program-files.ts';

/** The version of this program, from its package file. */
export const svcVersion: string = readVersion();

function readVersion(): string {
  const { version }: { readonly version: string } = JSON.parse(readFileSync(programFile('package.json'), 'utf8'));
  return version;
}
