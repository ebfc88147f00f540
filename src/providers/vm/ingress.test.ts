import fc from 'fast-check';
import { expect, test } from 'vitest';
import { asCidr, missingOpenings, openingsFor } from './ingress.ts';

const text = (spec: Parameters<typeof openingsFor>[0], sshFrom: readonly string[] = ['192.0.2.1']): readonly string[] =>
  openingsFor(spec, sshFrom).map(({ from, to, cidr }) => `${from}-${to} ${cidr}`);

test('a replica is open only to its clients, including SSH', () => {
  expect(text({ role: 'replica', ports: [81, 80, 90, 80], clients: ['198.51.100.7', '2001:db8::1'] })).toEqual([
    '22-22 198.51.100.7/32',
    '22-22 2001:db8::1/128',
    '80-81 198.51.100.7/32',
    '80-81 2001:db8::1/128',
    '90-90 198.51.100.7/32',
    '90-90 2001:db8::1/128',
  ]);
});

test('a replica without clients opens only the SSH port', () => {
  expect(text({ role: 'replica', ports: [80], clients: [] })).toEqual(['22-22 192.0.2.1/32']);
});

test("a controller's endpoints are open to all addresses, its SSH only to sshFrom", () => {
  const everybody = ['22-22 192.0.2.1/32', '30000-30001 0.0.0.0/0', '30000-30001 ::/0'];
  expect(text({ role: 'controller', ports: [30_000, 30_001], clients: [] })).toEqual(everybody);
  expect(text({ role: 'controller', ports: [30_000, 30_001], clients: ['0.0.0.0/0', '::/0'] })).toEqual(everybody);
});

test('SSH is open only to sshFrom when no clients are given', () => {
  const role = fc.constantFrom('replica' as const, 'controller' as const);
  fc.assert(
    fc.property(role, fc.array(fc.integer({ min: 1_024, max: 65_535 })), (one, ports) => {
      expect(text({ role: one, ports, clients: [] }).filter((line) => line.startsWith('22-'))).toEqual(['22-22 192.0.2.1/32']);
    }),
  );
});

test('an existing opening is not opened again', () => {
  const required = openingsFor({ role: 'replica', ports: [80, 81], clients: ['192.0.2.9'] }, []);
  expect(missingOpenings(required, required)).toEqual([]);
  expect(missingOpenings(required, [{ from: 80, to: 90, cidr: '192.0.2.9/32' }])).toEqual([{ from: 22, to: 22, cidr: '192.0.2.9/32' }]);
});

test('address ranges have the form that AWS requires', () => {
  expect(['192.0.2.1', '192.0.2.77/24', '10.1.2.3/8', '0.0.0.0/0', '2001:db8::/32'].map(asCidr)).toEqual([
    '192.0.2.1/32',
    '192.0.2.0/24',
    '10.0.0.0/8',
    '0.0.0.0/0',
    '2001:db8::/32',
  ]);
  expect(() => asCidr('everybody')).toThrow('not an address');
});
