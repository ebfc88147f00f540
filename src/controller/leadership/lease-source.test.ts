import { expect, test } from 'vitest';
import { leaseSource } from './lease-source.ts';

const file = { path: '/h/state.db', database: undefined };
const shared = { path: '/h/state.db', database: 'postgres://u:p@h/d' };

test('a controller with its own database has no rivals', () => {
  expect(leaseSource(undefined, file)).toBeUndefined();
});

test('with a shared database the lease is in the database', () => {
  expect(leaseSource(undefined, shared)).toEqual({ kubernetes: undefined, state: shared });
  expect(leaseSource('database', shared)).toEqual({ kubernetes: undefined, state: shared });
});

test('a Kubernetes lease is named by namespace and name', () => {
  expect(leaseSource('kubernetes:team-a/svc-controller', shared)).toEqual({
    kubernetes: { namespace: 'team-a', name: 'svc-controller' },
    state: shared,
  });
});

test.each(['kubernetes', 'kubernetes:name', 'kubernetes:a/b/c', 'etcd:x'])('the setting %s names no lease', (setting) => {
  expect(() => leaseSource(setting, file)).toThrow(`SVC_LEASE is '${setting}', which names no lease.`);
});
