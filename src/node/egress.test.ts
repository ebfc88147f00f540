import { expect, test } from 'vitest';
import { isForbiddenAddress } from './egress.ts';

test.for([
  '127.0.0.1',
  '127.255.0.1',
  '0.0.0.0',
  '169.254.169.254',
  '224.0.0.1',
  '255.255.255.255',
  '::',
  '::1',
  '::ffff:127.0.0.1',
  '::ffff:169.254.169.254',
  'fe80::1',
  'ff02::1',
  'localhost',
  '',
])('%s is forbidden', (address) => {
  expect(isForbiddenAddress(address)).toBe(true);
});

test.for(['192.0.2.2', '10.0.0.1', '100.64.0.1', '8.8.8.8', '2001:db8::1', 'fd00::2', '::ffff:192.0.2.2'])('%s is allowed', (address) => {
  expect(isForbiddenAddress(address)).toBe(false);
});
