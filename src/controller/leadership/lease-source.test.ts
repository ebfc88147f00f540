import { expect, test } from 'vitest';
import { leaseSource } from './lease-source.ts';

const file = { path: '/h/state.db', database: undefined };
const shared = { path: '/h/state.db', database: 'postgres://u:p@h/d' };

test('a controller with a database of its own has no rivals', () => {
  expect(leaseSource(undefined, file)).toBeUndefined();
});

test('a shared database has the lease', () => {
  expect(leaseSource(undefined, shared)).toEqual({ kubernetes: undefined, state: shared });
  expect(leaseSource('database', shared)).toEqual({ kubernetes: undefined, state: shared });
});

test('a lease of Kubernetes is named by namespace and name', () => {
  expect(leaseSource('kubernetes:team-a/svc-controller', shared)).toEqual({
    kubernetes: { namespace: 'team-a', name: 'svc-controller' },
    state: shared,
  });
});

test.each(['kubernetes', 'kubernetes:name', 'kubernetes:a/b/c', 'etcd:x'])('%s names no lease', (wish) => {
  expect(() => leaseSource(wish, file)).toThrow(`SVC_LEASE is '${wish}', which names no lease.`);
});
