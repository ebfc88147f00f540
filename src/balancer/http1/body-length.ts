import type { Fault } from './faults.ts';
import { isToken } from './octets.ts';

/** The length of a body in bytes, or one of the two below. */
export type BodyLength = number;

/** The body comes in chunks and marks its own end. */
export const chunkedLength = -1;
/** The body ends where the connection does (responses only). */
export const untilClose = -2;

/** Parses `Content-Length`. Undefined unless it is a plain decimal number up to 2^53-1 without leading zeros. */
export function readContentLength(value: string): number | undefined {
  if (value.length === 0 || value.length > 16) return undefined;
  let length = 0;
  for (let at = 0; at < value.length; at += 1) {
    const digit = value.charCodeAt(at) - 0x30;
    if (digit < 0 || digit > 9) return undefined;
    length = length * 10 + digit;
  }
  if (value.length > 1 && value.startsWith('0')) return undefined;
  return length <= Number.MAX_SAFE_INTEGER ? length : undefined;
}

/** Why a `Transfer-Encoding` is refused; undefined when it is exactly `chunked`. */
export function transferEncodingFault(value: string, minorVersion: 0 | 1): Fault | undefined {
  if (minorVersion === 0) return 'bad_transfer_encoding';
  const lower = value.toLowerCase();
  if (lower === 'chunked') return undefined;
  const codings = lower.split(',').map((coding) => coding.trim());
  // A valid list of unsupported codings gets 501. A value that looks like an attempt at request smuggling gets 400.
  const isHonest = codings.every((coding, index) =>
    coding === 'chunked' ? index > 0 && index === codings.length - 1 : coding !== 'identity' && isToken(coding),
  );
  return isHonest ? 'unknown_transfer_coding' : 'bad_transfer_encoding';
}
