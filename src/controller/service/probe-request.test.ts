import { expect, test } from 'vitest';
import { grpcStatusName, isServing, noMessage } from './probe-request.ts';

test.each([
  ['SERVING', [0, 0, 0, 0, 2, 8, 1], true],
  ['NOT_SERVING', [0, 0, 0, 0, 2, 8, 2], false],
  ['UNKNOWN, which is an empty message', [0, 0, 0, 0, 0], false],
  ['nothing', [], false],
  ['a message that was cut', [0, 0, 0, 0, 2, 8], false],
  ['a compressed message', [1, 0, 0, 0, 2, 8, 1], false],
  ['another field', [0, 0, 0, 0, 2, 16, 1], false],
])('%s', (_about, bytes, expected) => {
  expect(isServing(Buffer.from(bytes))).toBe(expected);
});

test('the request is an empty message', () => {
  expect([...noMessage]).toEqual([0, 0, 0, 0, 0]);
});

test('statuses are shown as text', () => {
  expect(grpcStatusName('12')).toBe('gRPC status 12, UNIMPLEMENTED (the program has no health service)');
  expect(grpcStatusName('13')).toBe('gRPC status 13');
  expect(grpcStatusName('a long story')).toBe('gRPC status ?');
});
