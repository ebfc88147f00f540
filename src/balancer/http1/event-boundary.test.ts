import fc from 'fast-check';
import { expect, test } from 'vitest';
import { EventBoundary } from './event-boundary.ts';

function isBetween(...pieces: readonly string[]): boolean {
  const boundary = new EventBoundary();
  for (const piece of pieces) boundary.track(Buffer.from(piece, 'latin1'), 0, piece.length);
  return boundary.isBetweenEvents;
}

test.each([
  ['', true],
  ['data: 1\n\n', true],
  ['data: 1\r\n\r\n', true],
  ['data: 1\r\r', true],
  ['data: 1\n\r\n', true],
  ['data: 1\r\n\n', true],
  ['data: 1\n\n\n\n\n\n\n', true],
  ['data: 1', false],
  ['data: 1\n', false],
  ['data: 1\r\n', false],
  ['data: 1\r', false],
  ['data: 1\n\ndata: 2', false],
  ['data: 1\n\ndata: 2\r\n', false],
])('%j ends between events: %j', (text, expected) => {
  expect(isBetween(text)).toBe(expected);
});

test('the split of the stream into pieces makes no difference', () => {
  const piece = fc.stringMatching(/^[a\r\n]{1,6}$/);
  fc.assert(fc.property(fc.array(piece, { maxLength: 6 }), (pieces) => isBetween(...pieces) === isBetween(pieces.join(''))));
});

test('after reset() it tracks the next stream', () => {
  const boundary = new EventBoundary();
  boundary.track(Buffer.from('xdata'), 1, 5);
  expect(boundary.isBetweenEvents).toBe(false);
  boundary.reset();
  expect(boundary.isBetweenEvents).toBe(true);
});
