import { createHash } from 'node:crypto';

/** Sixteen hex digits that identify a text. */
export function fingerprint(text: string): string {
  return createHash('sha256').update(text).digest('hex').slice(0, 16);
}
