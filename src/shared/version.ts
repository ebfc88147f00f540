import { readFileSync } from 'node:fs';

/** The version of this program, from its package file. */
export const svcVersion: string = (JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')) as { readonly version: string }).version;
