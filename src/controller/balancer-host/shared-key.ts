import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { messageOf, SvcError } from '../../shared/errors.ts';

/** Shorter ones could be guessed. */
const shortestToken = 16;

/**
 * The token of a file as a key of TLS: both sides show that they know it without telling it, in constant time, and what they say to each other (private
 * keys of endpoints too) is read by nobody else. Throws SVC_INVALID_CONFIG.
 */
export function readSharedKey(tokenFile: string): Buffer {
  let token: string;
  try {
    token = readFileSync(tokenFile, 'utf8').trim();
  } catch (error) {
    throw new SvcError('SVC_INVALID_CONFIG', `The token of the balancer hosts cannot be read: ${messageOf(error)}`, { cause: error });
  }
  if (token.length >= shortestToken) return createHash('sha256').update(token).digest();
  throw new SvcError('SVC_INVALID_CONFIG', `${tokenFile} holds no token: ${shortestToken} characters at least.`);
}

/** TLS without certificates: a key that both have, and one that is made for each connection. */
export const sharedKeyTls = {
  ciphers: 'ECDHE-PSK-CHACHA20-POLY1305',
  minVersion: 'TLSv1.2',
  maxVersion: 'TLSv1.2',
} as const;

/** Who the key is of: there is only one. */
export const sharedKeyName = 'svc';
