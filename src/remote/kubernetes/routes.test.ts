import { expect, test } from 'vitest';
import { ipv6Bytes } from '../tcp-table.ts';
import { hasOwnRoute } from './routes.ts';

const head = 'Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT\n';
const defaultV4 = 'eth0\t00000000\t0101A8C0\t0003\t0\t0\t0\t00000000\t0\t0\t0\n';
/** 10.203.1.0/24 via 10.103.0.11 */
const pods = 'kx3\t0001CB0A\t0B00670A\t0003\t0\t0\t0\t00FFFFFF\t0\t0\t0\n';
/** The same destination as a reject route: flags 0x0201. */
const refused = '*\t0001CB0A\t00000000\t0201\t0\t0\t0\t00FFFFFF\t0\t0\t0\n';
const halves = 'tun0\t00000000\t0100000A\t0003\t0\t0\t0\t00000080\t0\t0\t0\ntun0\t00000080\t0100000A\t0003\t0\t0\t0\t00000080\t0\t0\t0\n';

test.for([
  ['a specific route', '10.203.1.7', head + defaultV4 + pods, true],
  ['only the default route', '10.203.2.7', head + defaultV4 + pods, false],
  ['a reject route', '10.203.1.7', head + defaultV4 + refused, false],
  ['two half-space routes of a VPN', '10.203.1.7', head + defaultV4 + halves, false],
  ['no routes at all', '10.203.1.7', head, false],
  ['a host name', 'node1', head + pods, false],
  ['no address', '', head + pods, false],
] as const)('IPv4: %s', ([, address, v4, expected]) => {
  expect(hasOwnRoute(address, { v4, v6: '' })).toBe(expected);
});

test('of two routes with equal prefixes, the smaller metric counts', () => {
  const worse = refused.replace('\t0\t00FFFFFF', '\t9\t00FFFFFF');
  expect(hasOwnRoute('10.203.1.7', { v4: head + worse + pods, v6: '' })).toBe(true);
});

test.for([
  ['a specific route', 'fd00:10:244::7', true],
  ['only the default route', 'fd00:99::7', false],
  ['a reject route', 'fd00:bad::1', false],
] as const)('IPv6: %s', ([, address, expected]) => {
  const zero = '0'.repeat(32);
  const line = (network: string, bits: string, flags: string): string =>
    `${network} ${bits} ${zero} 00 ${zero} 00000400 00000001 00000000 ${flags}     eth0\n`;
  const v6 =
    line(zero, '00', '00000003') +
    line('fd000010024400000000000000000000', '40', '00000001') +
    line('fd000bad000000000000000000000000', '30', '00000201');
  expect(hasOwnRoute(address, { v4: head, v6 })).toBe(expected);
});

test('all notations of an IPv6 address are parsed', () => {
  expect(ipv6Bytes('::1')).toEqual([...Array.from({ length: 15 }, () => 0), 1]);
  expect(ipv6Bytes('::ffff:10.0.0.1').slice(10)).toEqual([255, 255, 10, 0, 0, 1]);
  expect(ipv6Bytes('fe80::1%eth0').slice(0, 2)).toEqual([254, 128]);
  expect(ipv6Bytes('1:2:3:4:5:6:7:8')).toEqual([0, 1, 0, 2, 0, 3, 0, 4, 0, 5, 0, 6, 0, 7, 0, 8]);
});
