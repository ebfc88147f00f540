import { expect, test } from 'vitest';
import { FakeClock } from '../../../test/support/fake-clock.ts';
import type { ReplicaAddress } from '../../shared/replica-address.ts';
import { openReplicaTunnel } from './replica-watch.ts';

const forward: ReplicaAddress = { kind: 'forward', path: '/run/f.sock', port: 8080 };
const direct: ReplicaAddress = { kind: 'tcp', host: '192.0.2.7', port: 8080 };
const inside: ReplicaAddress = { kind: 'unix', path: '/run/m.sock', port: 8080 };
const { signal } = new AbortController();
const clock = new FakeClock();

/** A replica whose machine returns the address when it is asked again. */
function aReplica(again: () => Promise<ReplicaAddress>, recorded = forward) {
  const patches: unknown[] = [];
  const handle = { patch: async (change: object) => void patches.push(change) };
  return { tunnel: openReplicaTunnel(handle, recorded, { address: again }, 8080), patches };
}

test('requests go directly once the port is open, and the address is recorded', async () => {
  const { tunnel, patches } = aReplica(async () => direct);
  await tunnel.settle(clock, signal);
  expect({ address: tunnel.address, notes: patches }).toEqual({ address: direct, notes: [{ address: direct }] });
});

test('a replica with a closed port keeps its port-forward', async () => {
  const { tunnel, patches } = aReplica(async () => forward);
  await tunnel.settle(clock, signal);
  expect({ address: tunnel.address, notes: patches }).toEqual({ address: forward, notes: [] });
});

test('a failed lookup keeps the current address', async () => {
  const { tunnel } = aReplica(() => Promise.reject(new Error('cut')));
  await tunnel.settle(clock, signal);
  expect(tunnel.address).toEqual(forward);
});

test('a tunnel into a private network is kept without a lookup', async () => {
  const { tunnel } = aReplica(() => Promise.reject(new Error('asked')), inside);
  await tunnel.settle(clock, signal);
  expect(tunnel.address).toEqual(inside);
});

test('a machine that never answers delays READY by a few seconds only', async () => {
  const { tunnel } = aReplica(() => new Promise<never>(() => undefined));
  let isSettled = false;
  void tunnel.settle(clock, signal).then(() => (isSettled = true));
  await clock.advance(5_100);
  expect([isSettled, tunnel.address]).toEqual([true, forward]);
});
