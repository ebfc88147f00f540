import { expect, test } from 'vitest';
import { parseDuration, parseSize, shortGb, memorySize } from './units.ts';

test.each<[string, 'B' | 'GB', number | undefined]>([
  ['512', 'B', 512],
  ['16', 'GB', 16 * 2 ** 30],
  ['16GB', 'B', 16 * 2 ** 30],
  ['1.5 kb', 'B', 1536],
  ['1TB', 'GB', 2 ** 40],
  ['2pb', 'GB', 2 ** 51],
  ['7b', 'GB', 7],
  [' 1MB ', 'B', 2 ** 20],
  ['', 'B', undefined],
  ['GB', 'B', undefined],
  ['1GiB', 'B', undefined],
  ['1G', 'B', undefined],
  ['-1GB', 'B', undefined],
  ['1e3', 'B', undefined],
  ['1  GB', 'B', undefined],
])('the size %j, bare numbers in %s', (text, bare, bytes) => {
  expect(parseSize(text, bare)).toBe(bytes);
});

test.each<[string, 's' | 'm', number | undefined]>([
  ['90', 's', 90],
  ['10', 'm', 600],
  ['1.5', 's', 1.5],
  ['90s', 'm', 90],
  ['10m', 's', 600],
  ['2H', 's', 7200],
  ['1d', 's', 86_400],
  ['2w', 's', 1_209_600],
  ['1h30m', 's', 5400],
  ['1.5h', 's', 5400],
  ['', 's', undefined],
  ['m', 's', undefined],
  ['10 m', 's', undefined],
  ['-10m', 's', undefined],
  ['10x', 's', undefined],
  ['1h30', 's', undefined],
])('the duration %j, bare numbers in %s', (text, bare, seconds) => {
  expect(parseDuration(text, bare)).toBe(seconds);
});

test.each([
  [0.3, '0.3'],
  [3.75, '3.8'],
  [8, '8'],
  [15.26, '15'],
])('%d GB in a table', (gb, shown) => {
  expect(shortGb(gb)).toBe(shown);
});

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
