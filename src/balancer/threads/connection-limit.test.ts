import { expect, test } from 'vitest';
import { connectionLimit } from './connection-limit.ts';

test('half of the files that are left are for clients, the other half for replicas', () => {
  expect([connectionLimit(null, 20_000, 1), connectionLimit(null, 20_000, 4)]).toEqual([9_920, 9_776]);
});

test('a configured limit holds unless there are too few files for it, and one connection is always allowed', () => {
  expect([connectionLimit(100, 20_000, 1), connectionLimit(50_000, 1_024, 1), connectionLimit(null, 64, 1)]).toEqual([100, 432, 1]);
});
