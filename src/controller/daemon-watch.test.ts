import { expect, test } from 'vitest';
import { idleStopMs, nextIdle } from './daemon-watch.ts';

test('idle time starts when nothing is left, and again after each use', () => {
  const idle = nextIdle({ since: null }, false, 1_000);
  expect(nextIdle(idle, false, 5_000)).toEqual({ since: 1_000 });
  expect(nextIdle(idle, true, 5_000)).toEqual({ since: null });
  expect(idleStopMs(idle, 10, 301_000)).toBe(300_000);
  expect(idleStopMs(idle, 10, 9e9)).toBe(0);
});

test('a busy daemon never stops, nor does one without a limit', () => {
  expect(idleStopMs({ since: null }, 10, 1)).toBeNull();
  expect(idleStopMs({ since: 0 }, undefined, 9e9)).toBeNull();
});

test('an immediate stop leaves time for the command that started the daemon', () => {
  expect(idleStopMs({ since: 0 }, 0, 1_000)).toBe(19_000);
  expect(idleStopMs({ since: 0 }, 0, 20_000)).toBe(0);
});
