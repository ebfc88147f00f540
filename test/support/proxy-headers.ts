/** Parts of a version 2 header of the PROXY protocol; by default an IPv4 client. */
export interface BinaryProxyHeader {
  /** Version in the upper half, command in the lower. */
  readonly command?: number;
  /** Family in the upper half, protocol in the lower. */
  readonly family?: number;
  /** Addresses, ports and extensions. */
  readonly rest?: Buffer;
  /** Of the rest, as the header says. */
  readonly length?: number;
}

/** Of a client at 192.0.2.1, port 4660, which connects to 198.51.100.2, port 443. */
export const ipv4Addresses: Buffer = Buffer.from('c0000201c6336402123401bb', 'hex');

/** A version 2 header, valid unless parts of it say otherwise. */
export function binaryProxyHeader({
  command = 0x21,
  family = 0x11,
  rest = ipv4Addresses,
  length = rest.length,
}: BinaryProxyHeader): Buffer {
  const start = Buffer.from('\r\n\r\n\0\r\nQUIT\n', 'latin1');
  return Buffer.concat([start, Buffer.from([command, family, length >> 8, length & 0xff]), rest]);
}
