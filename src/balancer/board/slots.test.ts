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
    slots.assign([aBalancerReplica(port, id), ...others.map((other) => aBalancerReplica(other, other))])[0]?.slot ?? -1;
  return { board, slots, count, slotOf };
}

test('a replica keeps its slot while its address stays the same', () => {
  const { slotOf } = someSlots();
  const slot = slotOf(1);
  expect([slotOf(1), slotOf(1, 1, [2])]).toEqual([slot, slot]);
  expect(slotOf(1, 9)).not.toBe(slot);
});

test('a slot is reused only when no thread has a request there', () => {
  const { slots, count, slotOf } = someSlots();
  const slot = slotOf(1);
  count(slot, 1, 1);
  slots.assign([]);
  slots.release();
  expect(slots.inFlight()).toEqual({ 1: 1 });
  const others = Array.from({ length: replicaSlots }, (_, index) => index + 10);
  expect(slots.assign(others.map((id) => aBalancerReplica(id, id)))).toHaveLength(replicaSlots - 1);
  count(slot, -1, 1);
  slots.release();
  expect(slotOf(1, 1, others.slice(0, 5))).toBe(slot);
});

test("reassigning a slot clears the previous replica's state", () => {
  const { board, slots } = someSlots(1);
  const [first] = slots.assign([aBalancerReplica(1, 1)]);
  const failures = board.slotCell('failures', first?.slot ?? 0);
  Atomics.store(board.cells, failures, 4);
  slots.assign([]);
  slots.release();
  const all = slots.assign(Array.from({ length: replicaSlots }, (_, index) => aBalancerReplica(index + 1, index + 2)));
  expect([all.length, Atomics.load(board.cells, failures)]).toEqual([replicaSlots, 0]);
});

test('requests in flight are summed over threads and over both addresses of a replica', () => {
  const { slots, count, slotOf } = someSlots();
  const old = slotOf(1);
  count(old, 2, 0);
  count(old, 1, 1);
  const slot = slotOf(1, 9, [2]);
  count(slot, 4, 1);
  expect(slots.inFlight()).toEqual({ 1: 7, 2: 0 });
});
