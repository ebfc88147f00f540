import { expect, test } from 'vitest';
import { hasConnection, whyClosed, listensOn } from './tcp-table.ts';

const head = '  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n';
const line = (local: string, remote: string, state: string): string =>
  `   0: ${local} ${remote} ${state} 00000000:00000000 00:00000000 00000000     0        0 1 1 0000000000000000 100 0 0 10 0\n`;
const none6 = '0'.repeat(32);

test.for([
  ['a listener on all IPv4 addresses', line('00000000:1F90', '00000000:0000', '0A'), true],
  ['a listener on all IPv6 addresses', line(`${none6}:1F90`, `${none6}:0000`, '0A'), true],
  ["a listener on the pod's address", line('0701CB0A:1F90', '00000000:0000', '0A'), true],
  ['a listener on IPv4 loopback only', line('0100007F:1F90', '00000000:0000', '0A'), false],
  ['a listener on IPv6 loopback only', line('00000000000000000000000001000000:1F90', `${none6}:0000`, '0A'), false],
  ['a listener on another port', line('00000000:1F91', '00000000:0000', '0A'), false],
  ['a connection but no listener', line('0701CB0A:1F90', '0100670A:C000', '01'), false],
] as const)('whether other machines can reach a port of a pod: %s', ([, text, expected]) => {
  expect(listensOn(head + text, 8080)).toBe(expected);
});

const from = { address: '10.103.0.1', port: 49_152 };

test.for([
  ["this client's", line('0701CB0A:1F90', '0100670A:C000', '01'), true],
  [
    "this client's, to a program that listens on IPv6",
    line('0000000000000000FFFF00000701CB0A:1F90', '0000000000000000FFFF00000100670A:C000', '01'),
    true,
  ],
  ["this client's, already ended by the program", line('0701CB0A:1F90', '0100670A:C000', '05'), true],
  ["another client's", line('0701CB0A:1F90', '0100670A:C001', '01'), false],
  ['from another address', line('0701CB0A:1F90', '0200670A:C000', '01'), false],
  ['to another port', line('0701CB0A:1F91', '0100670A:C000', '01'), false],
  ['already ended', line('0701CB0A:1F90', '0100670A:C000', '06'), false],
  ['an empty table', '', false],
] as const)('whether a connection ends in the pod: %s', ([, text, expected]) => {
  expect(hasConnection(head + text, 8080, from)).toBe(expected);
});

test('an IPv6 connection is found', () => {
  const text = line('0000D0FD000000000000000007000000:1F90', '0000D0FD000000000000000001000000:C000', '01');
  expect(hasConnection(text, 8080, { address: 'fdd0::1', port: 49_152 })).toBe(true);
});

test.for([
  ['another port', line('00000000:23A3', '00000000:0000', '0A'), 'a program listens on port 9123;'],
  ['loopback only', line('0100007F:1F90', '00000000:0000', '0A'), 'port 8080 of 127.0.0.1 only'],
] as const)('a closed port is explained by a listener on %s', ([, text, expected]) => {
  expect(whyClosed(head + text, 8080)).toContain(expected);
});

test.for([
  ['nothing', ''],
  ['that port by now', line('0100007F:1F90', '00000000:0000', '0A') + line('00000000:1F90', '00000000:0000', '0A')],
  ["svc's own proxy", line('0100007F:EE98', '00000000:0000', '0A')],
  ['a connection', line('00000000:23A3', '0100670A:C000', '01')],
] as const)('%s explains no closed port', ([, text]) => {
  expect(whyClosed(head + text, 8080)).toBeUndefined();
});
