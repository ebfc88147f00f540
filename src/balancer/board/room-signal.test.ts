import { expect, test } from 'vitest';
import { Board } from './board.ts';
import { RoomSignal } from './room-signal.ts';

/** Two threads, and which of them were woken. */
function twoThreads() {
  const board = Board.create(2);
  const woken: number[] = [];
  const signals = [0, 1].map((thread) => new RoomSignal({ board, thread }));
  const wait = (thread: number): void => {
    signals[thread]?.announce();
    void signals[thread]?.next().then(() => woken.push(thread));
  };
  /** Wake-ups arrive as tasks of their own. */
  const settled = async (count: number): Promise<void> => {
    while (woken.length < count) await new Promise(setImmediate);
    await new Promise(setImmediate);
  };
  return { board, woken, signals, wait, settled };
}

test('each room made wakes the thread that has waited longest', async () => {
  const { board, woken, wait, settled } = twoThreads();
  wait(1);
  wait(0);
  board.makeRoom();
  await settled(1);
  expect(woken).toEqual([1]);
  wait(1);
  board.makeRoom();
  board.makeRoom();
  await settled(3);
  expect(woken).toEqual([1, 0, 1]);
});

test('room made between the announcement and the wait is not missed', async () => {
  const { board, woken, signals, settled } = twoThreads();
  signals[0]?.announce();
  board.makeRoom();
  void signals[0]?.next().then(() => woken.push(0));
  await settled(1);
  expect(woken).toEqual([0]);
});

test('rooms are counted only while a thread waits', () => {
  const { board, signals } = twoThreads();
  board.makeRoom();
  expect(board.roomsMade).toBe(0);
  signals[0]?.announce();
  board.makeRoom();
  signals[0]?.settle();
  board.makeRoom();
  expect(board.roomsMade).toBe(1);
});
