import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { messageOf, SvcError } from '../../shared/errors.ts';

/** A shorter token could be guessed. */
const shortestToken = 16;

/**
 * Derives a TLS key from a file's token. Both sides prove in constant time that they know it, without sending it. TLS
 * encrypts the messages, which contain private keys of endpoints. Throws SVC_INVALID_CONFIG.
 */
export function readSharedKey(tokenFile: string): Buffer {
  let token: string;
  try {
    token = readFileSync(tokenFile, 'utf8').trim();
  } catch (error) {
    throw new SvcError('SVC_INVALID_CONFIG', `The token of the edge proxies cannot be read: ${messageOf(error)}`, { cause: error });
  }
  if (token.length >= shortestToken) return createHash('sha256').update(token).digest();
  throw new SvcError('SVC_INVALID_CONFIG', `${tokenFile} holds no token: ${shortestToken} characters at least.`);
}

/** TLS without certificates: a pre-shared key, and a fresh key for each connection. */
export const sharedKeyTls = {
  ciphers: 'ECDHE-PSK-CHACHA20-POLY1305',
  minVersion: 'TLSv1.2',
  maxVersion: 'TLSv1.2',
} as const;

/** TLS identity of the key: there is only one. */
export const sharedKeyName = 'svc';
