import { expect, test } from 'vitest';
import { isObject, parseJson } from './json.ts';

test.each([
  [{}, true],
  [{ a: 1 }, true],
  [[], false],
  [null, false],
  [undefined, false],
  ['text', false],
  [1, false],
])('%j: %s', (value, expected) => {
  expect(isObject(value)).toBe(expected);
});

test('text that is not JSON gives undefined', () => {
  expect([parseJson('{"a":1}'), parseJson('{"a":'), parseJson('')]).toEqual([{ a: 1 }, undefined, undefined]);
});
