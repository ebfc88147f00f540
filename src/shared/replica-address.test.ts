import { expect, test } from 'vitest';
import { describeAddress, type ReplicaAddress } from './replica-address.ts';

test.each<readonly [address: ReplicaAddress, words: string]>([
  [{ kind: 'tcp', host: '10.0.0.7', port: 8080, by: 'pod address' }, 'pod address 10.0.0.7:8080'],
  [{ kind: 'tcp', host: '10.0.0.1', port: 31_000, by: 'node port' }, 'node port 10.0.0.1:31000'],
  [{ kind: 'tcp', host: 'fd00::7', port: 8080 }, 'address [fd00::7]:8080'],
  [{ kind: 'unix', path: '/run/a.sock', port: 8080 }, 'Unix socket'],
  [{ kind: 'forward', path: '/run/a.sock', port: 8080 }, 'forward over SSH'],
  [{ kind: 'forward', path: '/run/a.sock', port: 8080, by: 'port-forward' }, 'port-forward through the API server'],
])('%j is described as %s', (address, words) => {
  expect(describeAddress(address)).toBe(words);
});
