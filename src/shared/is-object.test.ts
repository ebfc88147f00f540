import { expect, test } from 'vitest';
import { isObject } from './is-object.ts';

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
