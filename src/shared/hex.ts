import { randomBytes, createHash } from 'node:crypto';

/** Unpredictable lower-case hex digits from the system's generator: for ids, keys and cookies. */
export function randomHex(digits: number): string {
  return randomBytes(Math.ceil(digits / 2))
    .toString('hex')
    .slice(0, digits);
}

/** Sixteen hex digits that identify a text. */
export function fingerprint(text: string): string {
  return createHash('sha256').update(text).digest('hex').slice(0, 16);
}

/** Ten hex digits that identify a value among those of one home, for names that must be short. */
export function shortFingerprint(value: unknown): string {
  return fingerprint(JSON.stringify(value)).slice(0, 10);
}

/** A number from 0 to `count` - 1 that follows from a text: other texts probably get others. `count`: up to 2^32. */
export function numberOf(text: string, count: number): number {
  return createHash('sha256').update(text).digest().readUInt32BE() % count;
}
