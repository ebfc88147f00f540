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
  '100.100.100.200',
  '168.63.129.16',
  'fd00:ec2::254',
  'fd00:0ec2:0:0::254',
  'fd20:ce::254',
  '::ffff:a9fe:a9fe',
  '::ffff:100.100.100.200',
  '0:0:0:0:0:ffff:a83f:8110',
  '64:ff9b::169.254.169.254',
  '64:ff9b::127.0.0.1',
  '2002:a9fe:a9fe::1',
  // The system's resolver turns these spellings into addresses, which are checked after it.
  '2852039166',
  '0xa9fea9fe',
  '0251.0376.0251.0376',
  '169.254.43518',
  'localhost',
  '',
])('%s is forbidden', (address) => {
  expect(isForbiddenAddress(address)).toBe(true);
});

test.for([
  '192.0.2.2',
  '10.0.0.1',
  '100.64.0.1',
  '8.8.8.8',
  '2001:db8::1',
  'fd00::2',
  '100.100.100.201',
  '64:ff9b::8.8.8.8',
  '::ffff:192.0.2.2',
])('%s is allowed', (address) => {
  expect(isForbiddenAddress(address)).toBe(false);
});
