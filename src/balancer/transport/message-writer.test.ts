import { expect, test } from 'vitest';
import { copyToSend, releaseBuffer } from './message-writer.ts';

const large = Buffer.alloc(65_536, 'a');

test('copyToSend copies exactly the requested piece', () => {
  const read = Buffer.from(`.${'x'.repeat(40_000)}.`);
  const copy = copyToSend(read, 1, 40_001);
  read.fill('y');
  expect(copy.toString()).toBe('x'.repeat(40_000));
});

test('memory is reused after its release, and not before', () => {
  const first = copyToSend(large, 0, large.length);
  const second = copyToSend(large, 0, large.length);
  expect(second.buffer).not.toBe(first.buffer);
  releaseBuffer(first);
  expect(copyToSend(large, 0, 50_000).buffer).toBe(first.buffer);
});

test('small pieces take no block, and foreign memory is not pooled', () => {
  const small = copyToSend(large, 0, 5_000);
  const foreign = Buffer.alloc(65_536);
  releaseBuffer(small);
  releaseBuffer(foreign);
  const blocks = Array.from({ length: 40 }, () => copyToSend(large, 0, large.length).buffer);
  expect(blocks.includes(small.buffer) || blocks.includes(foreign.buffer)).toBe(false);
});
