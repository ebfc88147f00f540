import { createHash } from 'node:crypto';
import { hostname } from 'node:os';
import { randomHex } from '../shared/random-hex.ts';

/** The name of a folder of files for a controller: what comes from one source begins alike, so that only what changed need be sent. */
export function uploadName(source: string): string {
  const origin = createHash('sha256').update(`${hostname()}\0${source}`).digest('hex').slice(0, 16);
  return `${origin}-${randomHex(8)}`;
}
