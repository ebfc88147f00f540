import { expect, test } from 'vitest';
import { readLogTime } from './log-time.ts';

test.each([
  ['2026-01-01T00:00:05.250Z', 1_767_225_605_250],
  [1_767_225_605_250, 1_767_225_605_250],
  ['yesterday', undefined],
  [Number.NaN, undefined],
  [null, undefined],
  [undefined, undefined],
])('the time %j of a log line is %j ms', (value, ms) => {
  expect(readLogTime(value)).toBe(ms);
});
