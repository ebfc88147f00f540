import { parseAddressRange } from '../../shared/address-range.ts';
import { plainAddress } from './forwarded-client.ts';

/**
 * The header of the PROXY protocol (haproxy.org/download/3.0/doc/proxy-protocol.txt), versions 1 and 2, with which a
 * proxy begins a connection. Pure.
 */

/** `address`: of the client; undefined when the connection is the proxy's own, such as a health check. */
export interface ProxyHeader {
  /** Its bytes. */
  readonly length: number;
  readonly address: string | undefined;
}

const signature = Buffer.from('\r\n\r\n\0\r\nQUIT\n', 'latin1');
/** Signature, version with command, family with protocol, length of the rest. */
const fixedBytes = 16;
/** Longest version 2 header, bytes: the specification promises senders 536, and extensions can be longer. */
const maxBytes = 4_096;

const textSignature = Buffer.from('PROXY ', 'latin1');
/** Longest line of version 1 with its end (section 2.1). */
const maxLineBytes = 107;

/** Reads a header from the first bytes of a connection. `invalid` as soon as no further byte can help. */
export function readProxyHeader(bytes: Buffer): ProxyHeader | 'more' | 'invalid' {
  if (beginsAs(bytes, signature)) return readBinary(bytes);
  return beginsAs(bytes, textSignature) ? readLine(bytes) : 'invalid';
}

/** Whether the bytes that are there agree with the expected ones. */
function beginsAs(bytes: Buffer, expected: Buffer): boolean {
  const length = Math.min(bytes.length, expected.length);
  return bytes.compare(expected, 0, length, 0, length) === 0;
}

// ---- Version 2

const versionOfHeader = 2;
const commands = { local: 0, proxy: 1 } as const;
/** Family in the upper half, protocol in the lower. Datagrams and Unix sockets cannot carry requests to an endpoint. */
const families = { unknown: 0x00, tcp4: 0x11, tcp6: 0x21 } as const;
/** Two addresses and two ports. */
const addressBytes: Readonly<Record<number, number>> = { [families.tcp4]: 12, [families.tcp6]: 36 };

function readBinary(bytes: Buffer): ProxyHeader | 'more' | 'invalid' {
  // A byte that has not come yet cannot be wrong.
  const first = bytes[signature.length] ?? versionOfHeader << 4;
  const family = bytes[signature.length + 1] ?? families.unknown;
  const command = first & 0x0f;
  if (first >> 4 !== versionOfHeader || (command !== commands.local && command !== commands.proxy)) return 'invalid';
  const isLocal = command === commands.local;
  const needed = addressBytes[family];
  // The family of a proxy's own connection says nothing.
  if (!isLocal && needed === undefined && family !== families.unknown) return 'invalid';
  if (bytes.length < fixedBytes) return 'more';
  const length = fixedBytes + bytes.readUInt16BE(fixedBytes - 2);
  const extensions = fixedBytes + (isLocal ? 0 : (needed ?? 0));
  if (length > maxBytes || length < extensions) return 'invalid';
  if (bytes.length < length) return 'more';
  if (isLocal || needed === undefined) return { length, address: undefined };
  if (!areExtensions(bytes.subarray(extensions, length))) return 'invalid';
  return { length, address: family === families.tcp4 ? ipv4At(bytes) : ipv6At(bytes) };
}

/** Whether bytes are whole extensions: a type, a length of two bytes, a value. Their contents do not matter here. */
function areExtensions(bytes: Buffer): boolean {
  let at = 0;
  while (at + 3 <= bytes.length) at += 3 + bytes.readUInt16BE(at + 1);
  return at === bytes.length;
}

const ipv4At = (bytes: Buffer, at = fixedBytes): string => bytes.subarray(at, at + 4).join('.');

const mappedIpv4 = Buffer.from('00000000000000000000ffff', 'hex');

/** As RFC 5952 writes it: the longest of several zero groups is left out. */
function ipv6At(bytes: Buffer): string {
  const end = fixedBytes + mappedIpv4.length;
  if (bytes.compare(mappedIpv4, 0, mappedIpv4.length, fixedBytes, end) === 0) return ipv4At(bytes, end);
  const groups = Array.from({ length: 8 }, (_, index) => bytes.readUInt16BE(fixedBytes + 2 * index).toString(16)).join(':');
  const [longest] = [...groups.matchAll(/\b0(?::0)+\b/g)].toSorted(([one], [other]) => other.length - one.length);
  if (longest === undefined) return groups;
  const [zeros] = longest;
  return `${groups.slice(0, longest.index).replace(/:$/, '')}::${groups.slice(longest.index + zeros.length).replace(/^:/, '')}`;
}

// ---- Version 1

function readLine(bytes: Buffer): ProxyHeader | 'more' | 'invalid' {
  const end = bytes.subarray(0, maxLineBytes).indexOf('\r\n');
  if (end < 0) return bytes.length < maxLineBytes ? 'more' : 'invalid';
  const length = end + 2;
  const line = bytes.toString('latin1', textSignature.length, end);
  // What follows the word is to be ignored.
  if (line === 'UNKNOWN' || line.startsWith('UNKNOWN ')) return { length, address: undefined };
  const [family, source = '', destination = '', sourcePort = '', destinationPort = '', ...more] = line.split(' ');
  const bits = family === 'TCP4' ? 32 : family === 'TCP6' ? 128 : undefined;
  const isValid =
    bits !== undefined &&
    more.length === 0 &&
    isAddress(source, bits) &&
    isAddress(destination, bits) &&
    isPort(sourcePort) &&
    isPort(destinationPort);
  return isValid ? { length, address: plainAddress(source) } : 'invalid';
}

/** With TCP6, IPv4 may be in its IPv6 form. */
function isAddress(text: string, bits: 32 | 128): boolean {
  const plain = bits === 128 ? plainAddress(text) : text;
  const expected = plain === text ? bits : 32;
  return !plain.includes('/') && parseAddressRange(plain)?.bits === expected;
}

const isPort = (text: string): boolean => /^(?:0|[1-9]\d{0,4})$/.test(text) && Number(text) <= 65_535;
