import { expect, test } from 'vitest';
import { FakeClock } from '../../test/support/fake-clock.ts';
import { Deadlines } from './deadlines.ts';
import { WaitingRoom, type Waiting } from './waiting-room.ts';

function aRoom() {
  const clock = new FakeClock();
  const room = new WaitingRoom(new Deadlines(clock), 10_000);
  const said: string[] = [];
  /** A request that finds a replica on its `attempts`-th look. */
  const aRequest = (name: string, attempts = 1): Waiting => {
    let looks = 0;
    const request: Waiting = {
      giveUpAt: undefined,
      tryAgain() {
        looks += 1;
        if (looks >= attempts) said.push(`${name} goes on`);
        else if (!room.enter(request)) request.giveUp();
      },
      giveUp: () => said.push(`${name} gives up`),
    };
    return request;
  };
  return { clock, room, said, aRequest };
}

test('a service that never had a replica lets nobody wait', () => {
  const { room, aRequest } = aRoom();
  expect(room.enter(aRequest('a'))).toBe(false);
});

test('when the last replica goes, requests wait for the next one, in order', async () => {
  const { room, said, aRequest } = aRoom();
  room.replicasChanged(true);
  room.replicasChanged(false);
  expect([room.enter(aRequest('a')), room.enter(aRequest('b'))]).toEqual([true, true]);
  room.replicasChanged(true);
  expect([said, room.size]).toEqual([['a goes on', 'b goes on'], 0]);
});

test('nobody waits longer than ten seconds, however often it looked in vain', async () => {
  const { clock, room, said, aRequest } = aRoom();
  room.replicasChanged(true);
  room.enter(aRequest('a', 1_000));
  await clock.advance(9_500);
  expect(said).toEqual([]);
  await clock.advance(1_000);
  expect([said, room.size]).toEqual([['a gives up'], 0]);
});

test('a replica that refused is tried again soon without news', async () => {
  const { clock, room, said, aRequest } = aRoom();
  room.replicasChanged(true);
  room.enter(aRequest('a', 2));
  await clock.advance(1_000);
  expect(said).toEqual(['a goes on']);
});

test('half a minute after the last replica nobody waits any more', async () => {
  const { clock, room, aRequest } = aRoom();
  room.replicasChanged(true);
  room.replicasChanged(false);
  await clock.advance(31_000);
  expect(room.enter(aRequest('a'))).toBe(false);
});

test('there are a thousand places, and who leaves frees one', () => {
  const { room, aRequest } = aRoom();
  room.replicasChanged(true);
  const first = aRequest('first');
  room.enter(first);
  for (let count = 1; count < 1_000; count += 1) room.enter(aRequest(String(count)));
  expect(room.enter(aRequest('late'))).toBe(false);
  room.leave(first);
  expect(room.enter(aRequest('late'))).toBe(true);
});
