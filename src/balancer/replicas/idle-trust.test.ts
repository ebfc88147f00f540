import { expect, test } from 'vitest';
import { IdleTrust } from './idle-trust.ts';

test('idle connections of an unknown replica are not trusted', () => {
  expect(new IdleTrust().allows(0)).toBe(false);
});

test('idle connections are trusted for a second once one of them survived', () => {
  const trust = new IdleTrust();
  trust.recordAlive(0, 100);
  expect(trust.allows(0)).toBe(false);
  trust.recordAlive(0, 300);
  expect([0, 1_000, 1_001].map((idleMs) => trust.allows(idleMs))).toEqual([true, true, false]);
});

test('a replica that closes a connection early is distrusted for a minute', () => {
  const trust = new IdleTrust();
  trust.recordAlive(0, 300);
  trust.recordClosed(1_000, 20);
  trust.recordAlive(60_000, 900);
  expect(trust.allows(0)).toBe(false);
  trust.recordAlive(61_000, 900);
  expect(trust.allows(0)).toBe(true);
});

test('closing a long-idle connection causes no distrust', () => {
  const trust = new IdleTrust();
  trust.recordAlive(0, 300);
  trust.recordClosed(10_000, 5_000);
  expect(trust.allows(0)).toBe(true);
});
