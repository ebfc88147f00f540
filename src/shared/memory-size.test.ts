import { expect, test } from 'vitest';
import { memorySize } from './text.ts';

test.each([
  [2_000_000_000, '2 GB'],
  [1_999_998_976, '2 GB'],
  [2 ** 31, '2 GB'],
  [1.5 * 2 ** 30, '1.5 GB'],
  [256 * 2 ** 20, '256 MB'],
  [64_000_000, '64 MB'],
  [4_096, '4 kB'],
  [100, '100 bytes'],
])('%i bytes are %s', (bytes, words) => {
  expect(memorySize(bytes)).toBe(words);
});
