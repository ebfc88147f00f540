import { expect, test } from 'vitest';
import { ReplayBuffer } from './upload.ts';

const add = (replay: ReplayBuffer, kibibytes: number, isSent: boolean): void =>
  replay.add(Buffer.alloc(kibibytes * 1_024), 0, kibibytes * 1_024, isSent);

test('a body of up to 1 MiB can be replayed', () => {
  const replay = new ReplayBuffer();
  for (let part = 0; part < 16; part += 1) add(replay, 64, true);
  expect({ bytes: replay.bytes, isComplete: replay.isComplete, parts: replay.parts.length }).toEqual({
    bytes: 1_048_576,
    isComplete: true,
    parts: 16,
  });
  add(replay, 1, true);
  expect({ bytes: replay.bytes, isComplete: replay.isComplete }).toEqual({ bytes: 0, isComplete: false });
  add(replay, 1, true);
  expect(replay.bytes).toBe(0);
});

test('unsent parts are never dropped', () => {
  const replay = new ReplayBuffer();
  add(replay, 2_000, false);
  expect(replay.isComplete).toBe(true);
  replay.trim();
  expect(replay.isComplete).toBe(false);
});

test('a request without a body stays replayable after release()', () => {
  const replay = new ReplayBuffer();
  replay.release();
  expect(replay.isComplete).toBe(true);
});

test('kept parts are copies, because read buffers are overwritten', () => {
  const replay = new ReplayBuffer();
  const read = Buffer.from('.hello.');
  replay.add(read, 1, 6, false);
  replay.keep();
  read.fill('x');
  expect(Buffer.concat(replay.parts).toString()).toBe('hello');
});
