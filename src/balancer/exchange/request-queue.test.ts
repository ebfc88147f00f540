import { expect, test } from 'vitest';
import { FakeClock } from '../../../test/support/fake-clock.ts';
import type { RequestQueueLimits } from '../../domain/balancer-link.ts';
import { Board } from '../board/board.ts';
import { RoomSignal } from '../board/room-signal.ts';
import { Deadlines } from '../transport/deadlines.ts';
import { SharedQueueTally } from '../board/shared-counters.ts';
import { RequestQueue, type QueueRefusal, type QueueEntry } from './request-queue.ts';

interface Guest extends QueueEntry {
  enter(bytes?: number): QueueRefusal | undefined;
}

function rooms(count: number, changes: Partial<RequestQueueLimits> = {}) {
  const clock = new FakeClock();
  const board = Board.create(count);
  const limits = { maxRequests: 1_000, maxBytes: 10_240, timeoutMs: 10_000, fromZero: false, ...changes };
  const deadlines = new Deadlines(clock);
  const said: string[] = [];
  /** When a queue reported that it holds a first request. */
  const held: number[] = [];
  const all = Array.from({ length: count }, (_, thread) => {
    const signal = new RoomSignal({ board, thread });
    const room = new RequestQueue({
      deadlines,
      limits,
      tally: new SharedQueueTally({ board, thread }),
      threads: count,
      room: signal,
      onHeld: () => void held.push(clock.monotonic()),
    });
    /** A request that finds a replica on its `attempts`-th try. */
    const aGuest = (name: string, attempts = 1): Guest => {
      let looks = 0;
      const guest: Guest = {
        giveUpAt: undefined,
        enter: (bytes = 0) => room.enter(guest, bytes, false),
        tryAgain() {
          looks += 1;
          if (looks >= attempts) said.push(`${name} goes on`);
          else if (guest.enter() !== undefined) guest.giveUp();
        },
        giveUp: () => said.push(`${name} gives up`),
      };
      return guest;
    };
    const guests = (amount: number): readonly Guest[] => Array.from({ length: amount }, (__, index) => aGuest(`${index}`));
    return { room, signal, aGuest, guests };
  });
  return { clock, said, held, board, all };
}

function aRoom(changes: Partial<RequestQueueLimits> = {}) {
  const { clock, said, held, board, all } = rooms(1, changes);
  const [only] = all;
  if (only === undefined) throw new Error('there is one');
  return { clock, said, held, board, ...only };
}

test('a service without any earlier replica queues requests only if it scales from zero', () => {
  for (const [fromZero, said] of [
    [false, 'hopeless'],
    [true, undefined],
  ] as const) {
    const { room, aGuest } = aRoom({ fromZero });
    room.replicasChanged(0);
    expect(aGuest('a').enter()).toBe(said);
  }
});

test('requests wait for the first set, and fail at once when it is empty', () => {
  for (const [serving, said] of [
    [1, 'a goes on'],
    [0, 'a gives up'],
  ] as const) {
    const { room, aGuest, ...rest } = aRoom();
    expect(aGuest('a').enter()).toBeUndefined();
    room.replicasChanged(serving);
    expect(rest.said).toEqual([said]);
  }
});

test('a queue reports the first request that waits without a replica, once until a replica has served', () => {
  const { room, held, aGuest } = aRoom();
  room.replicasChanged(1);
  aGuest('a').enter();
  expect(held).toHaveLength(0);
  room.replicasChanged(0);
  for (const name of ['b', 'c']) aGuest(name).enter();
  expect(held).toHaveLength(1);
  room.replicasChanged(1);
  room.replicasChanged(0);
  aGuest('d').enter();
  expect(held).toHaveLength(2);
});

test('when the last replica leaves, requests wait in order for the next one', () => {
  const { room, said, aGuest } = aRoom();
  room.replicasChanged(1);
  room.replicasChanged(0);
  expect([aGuest('a').enter(), aGuest('b').enter(), room.mustWait]).toEqual([undefined, undefined, true]);
  room.replicasChanged(1);
  expect([said, room.size, room.mustWait]).toEqual([['a goes on', 'b goes on'], 0, false]);
});

test('retries without a replica do not extend the maximum wait', async () => {
  const { clock, room, said, aGuest } = aRoom();
  room.replicasChanged(1);
  aGuest('a', 1_000).enter();
  await clock.advance(9_500);
  expect(said).toEqual([]);
  await clock.advance(1_000);
  expect([said, room.size]).toEqual([['a gives up'], 0]);
});

test('a replica that refused is retried soon without a new set', async () => {
  const { clock, room, said, aGuest } = aRoom();
  room.replicasChanged(1);
  aGuest('a').enter();
  await clock.advance(1_000);
  expect(said).toEqual(['a goes on']);
});

test('30 seconds after the last replica left, requests are not queued', async () => {
  const { clock, room, aGuest } = aRoom();
  room.replicasChanged(1);
  room.replicasChanged(0);
  await clock.advance(31_000);
  expect(aGuest('a').enter()).toBe('hopeless');
});

test('the request limit counts all threads, and a leaving request frees its entry', () => {
  const { board, all } = rooms(2, { maxRequests: 5, fromZero: true });
  const [a, b] = all;
  const guests = a?.guests(5) ?? [];
  expect(guests.map((guest) => guest.enter())).toEqual(Array.from({ length: 5 }, () => undefined));
  expect(b?.aGuest('late').enter()).toBe('full');
  expect(board.sumOfThreads('queued')).toBe(5);
  if (guests[2] !== undefined) a?.room.finish(guests[2]);
  expect(b?.aGuest('next').enter()).toBeUndefined();
});

test('the limit of held bytes counts all threads, including bytes that arrive while queued', () => {
  const { all } = rooms(2, { maxBytes: 10_240, fromZero: true });
  const [a, b] = all;
  const [first, second] = [a?.aGuest('first'), b?.aGuest('second')];
  if (a === undefined || b === undefined || first === undefined || second === undefined) return;
  expect([first.enter(8_192), second.enter(4_096), second.enter(0)]).toEqual([undefined, 'full', undefined]);
  expect([b.room.addBytes(second, 2_048), b.room.addBytes(second, 1)]).toEqual([true, false]);
  a.room.finish(first);
  expect(b.room.addBytes(second, 8_192)).toBe(true);
});

test('a new replica gets a few queued requests first, and more with each answer', () => {
  const { room, said, guests } = aRoom({ fromZero: true });
  const all = guests(100);
  for (const guest of all) guest.enter();
  room.replicasChanged(1);
  expect([said.length, room.mustWait]).toEqual([16, true]);
  for (const guest of all.slice(0, 16)) room.finish(guest);
  expect(said.length).toBe(48);
  for (const guest of all.slice(16, 48)) room.finish(guest);
  expect([said.length, room.mustWait]).toEqual([100, false]);
  expect(said).toEqual(all.map((_, index) => `${index} goes on`));
});

test('replicas that answer slowly get more requests over time', async () => {
  const { clock, room, said, guests } = aRoom({ fromZero: true });
  for (const guest of guests(100)) guest.enter();
  room.replicasChanged(2);
  expect(said.length).toBe(32);
  await clock.advance(1_500);
  expect(said.length).toBe(100);
});

test('each of several threads releases its share', () => {
  const { said, all } = rooms(4, { fromZero: true });
  for (const { room, guests } of all) {
    for (const guest of guests(10)) guest.enter();
    room.replicasChanged(1);
  }
  expect(said.length).toBe(16);
});

test('a request that found no replica is retried before later ones', async () => {
  const { clock, room, said, aGuest } = aRoom({ fromZero: true });
  const names = Array.from({ length: 20 }, (_, index) => `${index}`);
  for (const name of names) aGuest(name, name === '3' ? 2 : 1).enter();
  room.replicasChanged(1);
  expect(said).not.toContain('3 goes on');
  await clock.advance(500);
  expect(said.slice(15, 17)).toEqual(['3 goes on', '16 goes on']);
});

/** Requests for replicas that have room for `room` of them; `said` names those that got it. */
function limited(most: number) {
  const { room: queue, signal, board, said, clock } = aRoom();
  queue.replicasChanged(1);
  let room = most;
  const ask = (name: string): QueueEntry => {
    const entry: QueueEntry = {
      giveUpAt: undefined,
      tryAgain() {
        if (room === 0) signal.announce();
        if (room === 0) return void queue.enter(entry, 0, true);
        room -= 1;
        said.push(name);
        return queue.finish(entry);
      },
      giveUp: () => said.push(`${name} gives up`),
    };
    if (queue.mustWait) queue.enter(entry, 0, false);
    else entry.tryAgain();
    return entry;
  };
  const makeRoom = async (): Promise<void> => {
    room += 1;
    const { length } = said;
    board.makeRoom();
    while (said.length === length && queue.size > 0) await new Promise(setImmediate);
  };
  return { queue, said, ask, makeRoom, clock };
}

test('requests that find each replica full go on in order', async () => {
  const { queue, said, ask, makeRoom } = limited(2);
  for (const name of ['a', 'b', 'c', 'd', 'e']) ask(name);
  expect(said).toEqual(['a', 'b']);
  await makeRoom();
  await makeRoom();
  ask('f');
  expect(said).toEqual(['a', 'b', 'c', 'd']);
  await makeRoom();
  await makeRoom();
  expect([said, queue.size, queue.mustWait]).toEqual([['a', 'b', 'c', 'd', 'e', 'f'], 0, false]);
});

test('a request that found no room keeps its place after a periodic try', async () => {
  const { said, ask, makeRoom, clock } = limited(0);
  for (const name of ['a', 'b', 'c']) ask(name);
  await clock.advance(1_000);
  for (let turn = 0; turn < 3; turn += 1) await makeRoom();
  expect(said).toEqual(['a', 'b', 'c']);
});

test('requests that wait for room give up in time', async () => {
  const { queue, said, ask, clock } = limited(0);
  ask('a');
  expect(queue.lacksRoom).toBe(true);
  await clock.advance(11_000);
  expect([said, queue.lacksRoom]).toEqual([['a gives up'], false]);
});
