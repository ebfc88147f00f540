import type { TLSSocket } from 'node:tls';

/** The subject of a client's certificate for the field `X-Svc-Client-Subject`. */
export function subjectOf(socket: TLSSocket): string {
  return subjectText(socket.getPeerX509Certificate()?.subject ?? '');
}

/**
 * `CN=alice,O=Example` for the subject as Node shows it: one attribute per line, with a backslash before special
 * characters of values (RFC 4514). Other than visible ASCII, and `%`, becomes percent-encoded UTF-8. Pure.
 */
export function subjectText(lines: string): string {
  const text = lines.replaceAll('\n', ',');
  return text.replaceAll(/[^ -$&-~]/gu, (character) => [...Buffer.from(character)].map(encoded).join(''));
}

const encoded = (octet: number): string => `%${octet.toString(16).toUpperCase().padStart(2, '0')}`;
