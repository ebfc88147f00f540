import { expect, test } from 'vitest';
import { IdleTrust } from './idle-trust.ts';

test('idle connections of a replica that nothing is known of are not trusted', () => {
  expect(new IdleTrust().allows(0)).toBe(false);
});

test('they are once one of them lasted, for a second each', () => {
  const trust = new IdleTrust();
  trust.noteAlive(0, 100);
  expect(trust.allows(0)).toBe(false);
  trust.noteAlive(0, 300);
  expect([0, 1_000, 1_001].map((idleMs) => trust.allows(idleMs))).toEqual([true, true, false]);
});

test('a replica that closes a connection early is not trusted for a minute, whatever else lasts', () => {
  const trust = new IdleTrust();
  trust.noteAlive(0, 300);
  trust.noteClosed(1_000, 20);
  trust.noteAlive(60_000, 900);
  expect(trust.allows(0)).toBe(false);
  trust.noteAlive(61_000, 900);
  expect(trust.allows(0)).toBe(true);
});

test('closing what was idle for long is what servers do', () => {
  const trust = new IdleTrust();
  trust.noteAlive(0, 300);
  trust.noteClosed(10_000, 5_000);
  expect(trust.allows(0)).toBe(true);
});
