import { expect, test } from 'vitest';
import { aBalancerReplica } from '../../../test/support/balancer.ts';
import { Board, replicaSlots } from './board.ts';
import { Slots } from './slots.ts';

function someSlots(threads = 2) {
  const board = Board.create(threads);
  const slots = new Slots(board);
  const count = (slot: number, change: number, thread = 0): void => {
    Atomics.add(board.cells, board.rowCell('inFlight', thread, slot), change);
  };
  const slotOf = (id: number, port = id, others: readonly number[] = []): number =>
    slots.place([aBalancerReplica(port, id), ...others.map((other) => aBalancerReplica(other, other))])[0]?.slot ?? -1;
  return { board, slots, count, slotOf };
}

test('a replica keeps its slot for as long as its address stays', () => {
  const { slotOf } = someSlots();
  const slot = slotOf(1);
  expect([slotOf(1), slotOf(1, 1, [2])]).toEqual([slot, slot]);
  expect(slotOf(1, 9)).not.toBe(slot);
});

test('a slot is used again only when no thread counts anything there', () => {
  const { slots, count, slotOf } = someSlots();
  const slot = slotOf(1);
  count(slot, 1, 1);
  slots.place([]);
  slots.release();
  expect(slots.inFlight()).toEqual({ 1: 1 });
  const others = Array.from({ length: replicaSlots }, (_, index) => index + 10);
  expect(slots.place(others.map((id) => aBalancerReplica(id, id)))).toHaveLength(replicaSlots - 1);
  count(slot, -1, 1);
  slots.release();
  expect(slotOf(1, 1, others.slice(0, 5))).toBe(slot);
});

test('what was known of the last replica in a slot is forgotten', () => {
  const { board, slots } = someSlots(1);
  const [first] = slots.place([aBalancerReplica(1, 1)]);
  const failures = board.slotCell('failures', first?.slot ?? 0);
  Atomics.store(board.cells, failures, 4);
  slots.place([]);
  slots.release();
  const all = slots.place(Array.from({ length: replicaSlots }, (_, index) => aBalancerReplica(index + 1, index + 2)));
  expect([all.length, Atomics.load(board.cells, failures)]).toEqual([replicaSlots, 0]);
});

test('requests under way are summed over threads, and over two addresses of one replica', () => {
  const { slots, count, slotOf } = someSlots();
  const old = slotOf(1);
  count(old, 2, 0);
  count(old, 1, 1);
  const slot = slotOf(1, 9, [2]);
  count(slot, 4, 1);
  expect(slots.inFlight()).toEqual({ 1: 7, 2: 0 });
});
