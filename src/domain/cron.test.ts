import { expect, test } from 'vitest';
import { isTimezone, lastMoment, parseCron } from './cron.ts';

const at = (text: string): number => Date.parse(text);
const last = (cron: string, now: string, timezone = 'UTC'): string | undefined => {
  const moment = lastMoment(cron, timezone, at(now));
  return moment === undefined ? undefined : new Date(moment).toISOString().slice(0, 16);
};

test.each([
  ['each minute', '* * * * *', '2030-05-01T12:34'],
  ['each quarter of an hour', '*/15 * * * *', '2030-05-01T12:30'],
  ['a time of this day', '0 8 * * *', '2030-05-01T08:00'],
  ['a time of the day before', '0 20 * * *', '2030-04-30T20:00'],
  ['the last hour of a list', '5 1,12,23 * * *', '2030-05-01T12:05'],
  ['a range with steps', '0 0-23/5 * * *', '2030-05-01T10:00'],
  ['a number with steps, up to the end', '40/10 * * * *', '2030-05-01T11:50'],
  ['working days', '0 9 * * mon-fri', '2030-05-01T09:00'],
  ['a Sunday, written as 7', '0 9 * * 7', '2030-04-28T09:00'],
  ['a month by name', '0 0 1 jan *', '2030-01-01T00:00'],
  ['either a day of the month or of the week', '0 0 13 * tue', '2030-04-30T00:00'],
  ['the last leap day', '0 0 29 2 *', '2028-02-29T00:00'],
])('%s: %s', (_about, cron, expected) => {
  // A Wednesday.
  expect(last(cron, '2030-05-01T12:34:56Z')).toBe(expected);
});

test('the time zone decides, also across a change of the clock', () => {
  expect(last('0 8 * * *', '2030-01-15T12:00:00Z', 'Europe/Berlin')).toBe('2030-01-15T07:00');
  expect(last('0 8 * * *', '2030-07-15T12:00:00Z', 'Europe/Berlin')).toBe('2030-07-15T06:00');
  // The clock goes from 2 to 3 o'clock on that day.
  expect(last('30 2 * * *', '2030-03-31T12:00:00Z', 'Europe/Berlin')).toBe('2030-03-31T01:30');
  expect(last('0 20 * * *', '2030-01-15T12:00:00Z', 'Asia/Kolkata')).toBe('2030-01-14T14:30');
});

test.each([
  ['four fields', '0 8 * *', 'needs five fields'],
  ['a minute that is too large', '60 8 * * *', 'has no valid minute: 60'],
  ['a range backwards', '0 9-5 * * *', 'has no valid hour: 9-5'],
  ['a day 0', '0 0 0 * *', 'has no valid day of the month: 0'],
  ['an unknown month', '0 0 1 foo *', 'has no valid month: foo'],
  ['a step of 0', '0 0 * * */0', 'has no valid day of the week: */0'],
  ['a range from a star', '*-5 0 * * *', 'has no valid minute: *-5'],
  ['a day that no year has', '0 0 30 2 *', 'names a day that no year has'],
])('%s is refused', (_about, cron, problem) => {
  expect(parseCron(cron)).toMatchObject({ problem: expect.stringContaining(problem) });
  expect(lastMoment(cron, 'UTC', 0)).toBeUndefined();
});

test('knows time zones', () => {
  expect([isTimezone('Europe/Berlin'), isTimezone('UTC'), isTimezone('Berlin')]).toEqual([true, true, false]);
});
