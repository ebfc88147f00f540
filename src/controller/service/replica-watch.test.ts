import { expect, test } from 'vitest';
import { FakeClock } from '../../../test/support/fake-clock.ts';
import type { ReplicaAddress } from '../../shared/replica-address.ts';
import { replicaRoute } from './replica-watch.ts';

const forward: ReplicaAddress = { kind: 'forward', path: '/run/f.sock', port: 8080 };
const direct: ReplicaAddress = { kind: 'tcp', host: '192.0.2.7', port: 8080 };
const inside: ReplicaAddress = { kind: 'unix', path: '/run/m.sock', port: 8080 };
const { signal } = new AbortController();
const clock = new FakeClock();

/** A replica whose machine returns the address when it is asked again. */
function aReplica(again: () => Promise<ReplicaAddress>, recorded = forward) {
  const patches: unknown[] = [];
  const handle = { patch: async (change: object) => void patches.push(change) };
  return { route: replicaRoute(handle, recorded, { address: again }, 8080), patches };
}

test('requests go directly once the port is open, and the address is recorded', async () => {
  const { route, patches } = aReplica(async () => direct);
  await route.settle(clock, signal);
  expect({ address: route.address, notes: patches }).toEqual({ address: direct, notes: [{ address: direct }] });
});

test('a replica with a closed port keeps its port-forward', async () => {
  const { route, patches } = aReplica(async () => forward);
  await route.settle(clock, signal);
  expect({ address: route.address, notes: patches }).toEqual({ address: forward, notes: [] });
});

test('a failed lookup keeps the current address', async () => {
  const { route } = aReplica(() => Promise.reject(new Error('cut')));
  await route.settle(clock, signal);
  expect(route.address).toEqual(forward);
});

test('a tunnel into a private network is kept without a lookup', async () => {
  const { route } = aReplica(() => Promise.reject(new Error('asked')), inside);
  await route.settle(clock, signal);
  expect(route.address).toEqual(inside);
});

test('a machine that never answers delays READY by a few seconds only', async () => {
  const { route } = aReplica(() => new Promise<never>(() => undefined));
  let isSettled = false;
  void route.settle(clock, signal).then(() => (isSettled = true));
  await clock.advance(5_100);
  expect([isSettled, route.address]).toEqual([true, forward]);
});
