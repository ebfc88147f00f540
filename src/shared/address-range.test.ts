import { expect, test } from 'vitest';
import { isAddressRange, isInRanges, parseAddressRange } from './address-range.ts';

const ranges = (...texts: readonly string[]) => texts.map(parseAddressRange).filter((range) => range !== undefined);

test.for(['10.0.0.1', '10.0.0.0/8', '0.0.0.0/0', '::1', 'fd00::/8', '2001:db8:0:0:0:0:0:1', '::/0'])('%s is parsed as a range', (text) => {
  expect(isAddressRange(text)).toBe(true);
});

test.for([
  '',
  'localhost',
  '10.0.0',
  '10.0.0.256',
  '10.0.0.01',
  '10.0.0.0/33',
  '10.0.0.0/',
  '10.0.0.0/8/8',
  '::1::',
  ':1',
  '1:2:3:4:5:6:7',
  '::/129',
])('%s is not a range', (text) => {
  expect(isAddressRange(text)).toBe(false);
});

test('an address lies in a range when the counted bits agree', () => {
  const trusted = ranges('10.0.0.0/8', '192.168.1.7', 'fd00::/8');
  const inside = ['10.200.3.4', '192.168.1.7', '::ffff:10.1.1.1', 'fd12::1'];
  const outside = ['11.0.0.1', '192.168.1.8', 'fe80::1', '::1', 'unknown'];
  expect(inside.map((address) => isInRanges(address, trusted))).toEqual([true, true, true, true]);
  expect(outside.map((address) => isInRanges(address, trusted))).toEqual([false, false, false, false, false]);
});

test('without ranges no address matches', () => {
  expect(isInRanges('10.0.0.1', [])).toBe(false);
});
