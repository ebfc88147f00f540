import fc from 'fast-check';
import { expect, test } from 'vitest';
import { forwardedHop, readForwarded } from './forwarded-field.ts';

const hop = (address: string, proto?: string, host?: string) => ({ address, proto, host });

test.each([
  ['for=192.0.2.43', [hop('192.0.2.43')]],
  ['For="[2001:db8:cafe::17]:4711"', [hop('2001:db8:cafe::17')]],
  ['for=192.0.2.60;proto=http;by=203.0.113.43', [hop('192.0.2.60', 'http')]],
  ['for=192.0.2.43, for="198.51.100.17:80";host="a:8"', [hop('192.0.2.43'), hop('198.51.100.17', undefined, 'a:8')]],
  ['for=_hidden, for=unknown', [hop('unknown'), hop('unknown')]],
  [String.raw`for=10.0.0.1;host="a\"b"`, [hop('10.0.0.1', undefined, 'a"b')]],
  ['proto=https', [hop('unknown', 'https')]],
  [', for=10.0.0.1 ,, ', [hop('10.0.0.1')]],
  ['', []],
])('%s is read', (text, hops) => {
  expect(readForwarded([text])).toEqual(hops);
});

test.each([
  'for=a.example',
  'for=10.0.0.0/8',
  'for=2001:db8::1',
  'for="[10.0.0.1]"',
  'for=1;for=2',
  'for =10.0.0.1',
  'for=',
  'for="10.0.0.1',
  'for=10.0.0.1 proto=http',
  '10.0.0.1',
  'for="10.0.0.1, 1.1.1.1"',
])('%s is malformed', (text) => {
  expect(readForwarded(['for=10.0.0.1', text])).toBeUndefined();
});

test('several fields are one list, and what a proxy adds is read again', () => {
  // The kernel writes no IPv4 address within another one.
  const address = fc.oneof(
    fc.ipV4(),
    fc.ipV6().filter((text) => !text.includes('.')),
  );
  fc.assert(
    fc.property(fc.array(address, { maxLength: 5 }), (addresses) => {
      const fields = addresses.map((one) => forwardedHop(one, 'https'));
      expect(readForwarded(fields)).toEqual(addresses.map((one) => hop(one, 'https')));
    }),
  );
});
