import { expect, test } from 'vitest';
import { fingerprint } from './hex.ts';

test('equal texts have equal fingerprints, other texts differ', () => {
  expect(fingerprint('a')).toBe(fingerprint('a'));
  expect(fingerprint('a')).not.toBe(fingerprint('b'));
  expect(fingerprint('')).toMatch(/^[0-9a-f]{16}$/);
});
