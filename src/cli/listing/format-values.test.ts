import { expect, test } from 'vitest';
import { formatAge, formatDuration, formatPrice, formatLatency } from './format-values.ts';

test.for([
  [0, '0s'],
  [0.9, '0s'],
  [-3, '0s'],
  [59, '59s'],
  [605, '10m 5s'],
  [3_600, '1h'],
  [176_405, '2d 1h 5s'],
] as const)('%d seconds are %s', ([seconds, text]) => {
  expect(formatDuration(seconds)).toBe(text);
});

const now = Date.parse('2030-01-01T12:00:00Z');

test.for([
  ['2030-01-01T12:00:00.000Z', 'just now'],
  ['2030-01-01T12:00:05.000Z', 'just now'],
  ['2030-01-01T11:59:59.000Z', '1 sec ago'],
  ['2030-01-01T11:59:30.000Z', '30 secs ago'],
  ['2030-01-01T11:58:30.000Z', '1 min ago'],
  ['2030-01-01T10:59:00.000Z', '1 hr ago'],
  ['2029-12-30T11:00:00.000Z', '2 days ago'],
] as const)('%s is %s at noon', ([at, text]) => {
  expect(formatAge(at, now)).toBe(text);
});

test('a missing time is shown as a dash', () => {
  expect(formatAge(null, now)).toBe('-');
});

test.for([
  [null, '-'],
  [0, '$0'],
  [0.0125, '$0.013'],
  [1.2, '$1.20'],
] as const)('a price of %s is shown as %s', ([hourlyUsd, text]) => {
  expect(formatPrice(hourlyUsd)).toBe(text);
});

test.each([
  [0, '0.0ms'],
  [8.14, '8.1ms'],
  [99.96, '100ms'],
  [999.6, '1.0s'],
  [59_949, '59.9s'],
  [59_950, '1m00s'],
  [303_000, '5m03s'],
  [3_599_499, '59m59s'],
  [7_500_000, '2h05m'],
])('%d ms of latency are shown as %s', (ms, text) => {
  expect(formatLatency(ms)).toBe(text);
});
