import { expect, test } from 'vitest';
import { ReplayBuffer } from './replay-buffer.ts';

const kibibytes = (count: number): Buffer => Buffer.alloc(count * 1_024);

test('everything up to a mebibyte can be sent again', () => {
  const replay = new ReplayBuffer();
  for (let part = 0; part < 16; part += 1) replay.add(kibibytes(64), true);
  expect({ bytes: replay.bytes, isComplete: replay.isComplete, parts: replay.parts.length }).toEqual({
    bytes: 1_048_576,
    isComplete: true,
    parts: 16,
  });
  replay.add(kibibytes(1), true);
  expect({ bytes: replay.bytes, isComplete: replay.isComplete }).toEqual({ bytes: 0, isComplete: false });
  replay.add(kibibytes(1), true);
  expect(replay.bytes).toBe(0);
});

test('what was not sent yet is never given up', () => {
  const replay = new ReplayBuffer();
  replay.add(kibibytes(2_000), false);
  expect(replay.isComplete).toBe(true);
  replay.trim();
  expect(replay.isComplete).toBe(false);
});

test('a request without a body stays replayable after its parts are let go', () => {
  const replay = new ReplayBuffer();
  replay.release();
  expect(replay.isComplete).toBe(true);
});
