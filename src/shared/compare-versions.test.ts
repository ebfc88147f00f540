import { expect, test } from 'vitest';
import { isOlderVersion } from './compare-versions.ts';

test.each([
  ['0.1.0', '0.1.1', true],
  ['0.9.0', '0.10.0', true],
  ['0.10.0', '0.9.9', false],
  ['1.0.0', '1.0.0', false],
  ['1.0', '1.0.1', true],
  ['2.0.0', '1.9.9', false],
  ['1.0.0-rc.1', '1.0.0', false],
])('%s is older than %s: %s', (a, b, expected) => {
  expect(isOlderVersion(a, b)).toBe(expected);
});
