import { createHash } from 'node:crypto';
import { hostname } from 'node:os';
import { randomHex } from '../shared/hex.ts';

/** Names of upload folders for one source have the same prefix, so that only changes must be sent. */
export function uploadName(source: string): string {
  const origin = createHash('sha256').update(`${hostname()}\0${source}`).digest('hex').slice(0, 16);
  return `${origin}-${randomHex(8)}`;
}
