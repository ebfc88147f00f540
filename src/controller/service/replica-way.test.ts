import { expect, test } from 'vitest';
import type { ReplicaAddress } from '../../shared/replica-address.ts';
import { openWay } from './replica-way.ts';

const forward: ReplicaAddress = { kind: 'forward', path: '/run/f.sock', port: 8080 };
const direct: ReplicaAddress = { kind: 'tcp', host: '192.0.2.7', port: 8080 };
const inside: ReplicaAddress = { kind: 'unix', path: '/run/m.sock', port: 8080 };
const { signal } = new AbortController();

/** A replica whose machine gives the address when it is asked again. */
function aReplica(again: () => Promise<ReplicaAddress>, recorded = forward) {
  const notes: unknown[] = [];
  const handle = { note: async (change: object) => void notes.push(change) };
  return { way: openWay(handle, recorded, { address: again }, 8080), notes };
}

test('requests go directly once the program listens on a port that is open to us, and that is recorded', async () => {
  const { way, notes } = aReplica(async () => direct);
  await way.settle(signal);
  expect({ address: way.address, notes }).toEqual({ address: direct, notes: [{ address: direct }] });
});

test('a port that is closed to us is reached through the forward', async () => {
  const { way, notes } = aReplica(async () => forward);
  await way.settle(signal);
  expect({ address: way.address, notes }).toEqual({ address: forward, notes: [] });
});

test('a machine that does not answer just then keeps its way', async () => {
  const { way } = aReplica(() => Promise.reject(new Error('cut')));
  await way.settle(signal);
  expect(way.address).toEqual(forward);
});

test('a way into a network of its own is the only one, and nobody is asked', async () => {
  const { way } = aReplica(() => Promise.reject(new Error('asked')), inside);
  await way.settle(signal);
  expect(way.address).toEqual(inside);
});
