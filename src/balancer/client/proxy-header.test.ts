import fc from 'fast-check';
import { expect, test } from 'vitest';
import { binaryProxyHeader as binary, ipv4Addresses, type BinaryProxyHeader } from '../../../test/support/proxy-headers.ts';
import { readProxyHeader } from './proxy-header.ts';

const ipv6 = (source: string): Buffer => Buffer.from(`${source}${'20010db8'.padEnd(32, '0')}123401bb`, 'hex');
const read = (parts: BinaryProxyHeader): unknown => {
  const bytes = binary(parts);
  const result = readProxyHeader(bytes);
  return typeof result === 'string' ? result : [result.address, bytes.length - result.length];
};

test.each<[about: string, BinaryProxyHeader, address: string | undefined]>([
  ['IPv4', {}, '192.0.2.1'],
  ['IPv6', { family: 0x21, rest: ipv6('20010db8000000000001000000000001') }, '2001:db8::1:0:0:1'],
  ['IPv6 that begins with zeros', { family: 0x21, rest: ipv6('00000000000000000000000000000001') }, '::1'],
  ['IPv6 that ends with zeros', { family: 0x21, rest: ipv6('20010db8000100000000000000000000') }, '2001:db8:1::'],
  ['IPv6 of zeros', { family: 0x21, rest: ipv6('0'.repeat(32)) }, '::'],
  ['IPv6 without two zero groups', { family: 0x21, rest: ipv6('20010db8000000020003000400050006') }, '2001:db8:0:2:3:4:5:6'],
  [
    'IPv6 with zeros inside of groups',
    { family: 0x21, rest: ipv6('1000100010001000100010001000a0b0') },
    '1000:1000:1000:1000:1000:1000:1000:a0b0',
  ],
  ['IPv4 in IPv6', { family: 0x21, rest: ipv6('00000000000000000000ffffc0000201') }, '192.0.2.1'],
  ['extensions', { rest: Buffer.concat([ipv4Addresses, Buffer.from('040000030004deadbeef', 'hex')]) }, '192.0.2.1'],
  ['a connection of the proxy', { command: 0x20, family: 0, rest: Buffer.alloc(0) }, undefined],
  ['a connection of the proxy with anything', { command: 0x20, family: 0xff, rest: Buffer.from('any') }, undefined],
  ['an unknown family', { family: 0, rest: Buffer.from('any') }, undefined],
])('version 2: %s', (_about, parts, address) => {
  expect(read(parts)).toEqual([address, 0]);
});

test.each<[about: string, BinaryProxyHeader]>([
  ['version 1 in binary', { command: 0x11 }],
  ['another command', { command: 0x22 }],
  ['UDP', { family: 0x12 }],
  ['a Unix socket', { family: 0x31, rest: Buffer.alloc(216) }],
  ['addresses that are too short', { rest: ipv4Addresses.subarray(1) }],
  ['IPv4 addresses as IPv6', { family: 0x21 }],
  ['half an extension', { rest: Buffer.concat([ipv4Addresses, Buffer.from('04', 'hex')]) }],
  ['an extension beyond the end', { rest: Buffer.concat([ipv4Addresses, Buffer.from('040002aa', 'hex')]) }],
  ['a length that no proxy needs', { length: 4_081 }],
])('version 2 refuses %s', (_about, parts) => {
  expect(read(parts)).toBe('invalid');
});

test.each([
  ['PROXY TCP4 192.0.2.1 198.51.100.2 4660 443', '192.0.2.1'],
  ['PROXY TCP6 2001:db8::1 2001:db8::2 0 65535', '2001:db8::1'],
  ['PROXY TCP6 ::ffff:192.0.2.1 ::ffff:198.51.100.2 1 2', '192.0.2.1'],
  ['PROXY UNKNOWN', undefined],
  [`PROXY UNKNOWN ${'f'.repeat(91)}`, undefined],
])('version 1: %s', (line, address) => {
  expect(readProxyHeader(Buffer.from(`${line}\r\nGET / HTTP/1.1\r\n`))).toEqual({ length: line.length + 2, address });
});

test.each([
  'GET / HTTP/1.1',
  'proxy TCP4 1.1.1.1 2.2.2.2 1 2',
  'PROXY  TCP4 1.1.1.1 2.2.2.2 1 2',
  'PROXY TCP4 1.1.1.1 2.2.2.2 1',
  'PROXY TCP4 1.1.1.1 2.2.2.2 1 2 3',
  'PROXY TCP4 1.1.1.1 2.2.2.2 1 65536',
  'PROXY TCP4 1.1.1.1 2.2.2.2 01 2',
  'PROXY TCP4 1.1.1.01 2.2.2.2 1 2',
  'PROXY TCP4 1.1.1.1/8 2.2.2.2 1 2',
  'PROXY TCP4 ::1 ::1 1 2',
  'PROXY TCP6 1.1.1.1 2.2.2.2 1 2',
  'PROXY TCP4 ::ffff:1.1.1.1 2.2.2.2 1 2',
  'PROXY UDP4 1.1.1.1 2.2.2.2 1 2',
  'PROXY UNKNOWNS',
  `PROXY UNKNOWN ${'f'.repeat(92)}`,
])('version 1 refuses %s', (line) => {
  expect(readProxyHeader(Buffer.from(`${line}\r\n`))).toBe('invalid');
});

const ipv4 = fc.ipV4();
const ports = fc.integer({ min: 0, max: 65_535 });
const lines = fc
  .tuple(ipv4, ipv4, ports, ports)
  .map(([one, other, from, to]) => ({ bytes: Buffer.from(`PROXY TCP4 ${one} ${other} ${from} ${to}\r\n`), address: one }));
const extension = fc
  .tuple(fc.integer({ min: 0, max: 255 }), fc.uint8Array({ maxLength: 300 }))
  .map(([type, value]) => Buffer.concat([Buffer.from([type, value.length >> 8, value.length & 0xff]), value]));
const binaries = fc.tuple(ipv4, fc.array(extension, { maxLength: 5 })).map(([address, extensions]) => {
  const source = Buffer.from(address.split('.').map(Number));
  return { bytes: binary({ rest: Buffer.concat([source, ipv4Addresses.subarray(4), ...extensions]) }), address };
});
const headers = fc.oneof(lines, binaries);

test('a header is read with bytes after it, and needs all of its own', () => {
  fc.assert(
    fc.property(headers, fc.uint8Array({ maxLength: 40 }), ({ bytes, address }, after) => {
      expect(readProxyHeader(Buffer.concat([bytes, after]))).toEqual({ length: bytes.length, address });
      for (let end = 0; end < bytes.length; end += 1) expect(readProxyHeader(bytes.subarray(0, end))).toBe('more');
    }),
    { numRuns: 200 },
  );
});

test('more bytes never change a verdict, and no bytes throw', () => {
  const damaged = fc
    .tuple(headers, fc.nat(), fc.integer({ min: 0, max: 255 }))
    .map(([{ bytes }, at, value]) => Buffer.from(bytes).fill(value, at % bytes.length, (at % bytes.length) + 1));
  fc.assert(
    fc.property(
      fc.oneof(
        damaged,
        fc.uint8Array({ maxLength: 60 }).map((octets) => Buffer.from(octets)),
      ),
      (bytes) => {
        const whole = readProxyHeader(bytes);
        expect(typeof whole === 'string' || whole.length <= bytes.length).toBe(true);
        for (let end = 0; end < bytes.length; end += 1) {
          const early = readProxyHeader(bytes.subarray(0, end));
          expect(early === 'more' ? whole : early).toEqual(whole);
        }
      },
    ),
    { numRuns: 500 },
  );
});
