import { randomBytes } from 'node:crypto';

/** Unpredictable lower-case hex digits from the system's generator: for ids, keys and cookies. */
export function randomHex(digits: number): string {
  return randomBytes(Math.ceil(digits / 2))
    .toString('hex')
    .slice(0, digits);
}
