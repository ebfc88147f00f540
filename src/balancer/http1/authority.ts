import { hostOctets } from './octets.ts';

const colon = 0x3a;
const maxPort = 65_535;

/**
 * Whether `HOST[:PORT]` is a plain name, an IPv4 address or a bracketed IPv6 address, with a port in range. Peers parse
 * user information, commas and spaces differently.
 */
export function isValidAuthority(authority: string): boolean {
  const hostEnd = authority.startsWith('[') ? ipv6End(authority) : nameEnd(authority);
  if (hostEnd <= 0) return false;
  return hostEnd === authority.length || isPort(authority, hostEnd);
}

function nameEnd(authority: string): number {
  let at = 0;
  while (at < authority.length && hostOctets[authority.charCodeAt(at)] === 1) at += 1;
  return at;
}

/** The offset after the closing bracket; 0 when there is none, or anything but digits, colons and dots is inside. */
function ipv6End(authority: string): number {
  for (let at = 1; at < authority.length; at += 1) {
    const character = authority.charAt(at);
    if (character === ']') return at > 2 ? at + 1 : 0;
    if (!'0123456789abcdefABCDEF:.'.includes(character)) return 0;
  }
  return 0;
}

/** An empty port (`host:`) is allowed by RFC 3986, section 3.2.3. */
function isPort(authority: string, from: number): boolean {
  if (authority.charCodeAt(from) !== colon || authority.length - from > 6) return false;
  let port = 0;
  for (let at = from + 1; at < authority.length; at += 1) {
    const digit = authority.charCodeAt(at) - 0x30;
    if (digit < 0 || digit > 9) return false;
    port = port * 10 + digit;
  }
  return port <= maxPort;
}
