import { expect, test } from 'vitest';
import { Board } from '../board/board.ts';
import { SharedHealthRecord } from '../board/health-record.ts';
import { PassiveHealth } from './passive-health.ts';

const healthOf = (board = Board.create(1), slot = 0): PassiveHealth => new PassiveHealth(new SharedHealthRecord(board, slot));

function fail(health: PassiveHealth, times: number, now: number): readonly boolean[] {
  return Array.from({ length: times }, () => health.recordFailure(now, true));
}

test('five consecutive failures eject for ten seconds', () => {
  const health = healthOf();
  expect(fail(health, 5, 0)).toEqual([false, false, false, false, true]);
  expect([health.isEjected(9_999), health.isEjected(10_000)]).toEqual([true, false]);
});

test('a success resets the count of failures', () => {
  const health = healthOf();
  fail(health, 4, 0);
  health.recordSuccess();
  expect(fail(health, 4, 0)).not.toContain(true);
  expect(health.isEjected(0)).toBe(false);
});

test('failures minutes apart are not consecutive', () => {
  const health = healthOf();
  for (let count = 0; count < 10; count += 1) expect(health.recordFailure(count * 300_200, true)).toBe(false);
  expect(fail(health, 4, 9 * 300_200)).toEqual([false, false, false, true]);
});

test('no replica is ejected when no more may be', () => {
  const health = healthOf();
  for (let count = 0; count < 10; count += 1) expect(health.recordFailure(0, false)).toBe(false);
  expect(health.isEjected(0)).toBe(false);
});

test('each later ejection is longer, up to five minutes, until a long quiet time', () => {
  const health = healthOf();
  let now = 0;
  const lengths: number[] = [];
  for (let round = 0; round < 40; round += 1) {
    fail(health, 5, now);
    lengths.push(health.markedUntil - now);
    now = health.markedUntil + 100;
  }
  expect([lengths[0], lengths[1], lengths[2], lengths.at(-1)]).toEqual([10_000, 20_000, 30_000, 300_000]);
  now += 300_100;
  fail(health, 5, now);
  expect(health.markedUntil - now).toBe(10_000);
});

test('failures of requests in flight do not extend an ejection', () => {
  const health = healthOf();
  fail(health, 5, 0);
  fail(health, 5, 100);
  expect(health.markedUntil).toBe(10_000);
});

test('a refusal or Retry-After makes the balancer avoid the replica, without a failure', () => {
  const health = healthOf();
  health.recordRefusal(0);
  expect([health.isAvoided(999), health.isAvoided(1_000), health.isEjected(0)]).toEqual([true, false, false]);
  health.avoid(0, 5_000);
  expect([health.isAvoided(4_999), health.isAvoided(5_000)]).toEqual([true, false]);
  health.avoid(0, 3_600_000);
  expect([health.isAvoided(29_999), health.isAvoided(30_000)]).toEqual([true, false]);
});

test('a record by one thread counts for all threads and only that replica', () => {
  const board = Board.create(2);
  const first = healthOf(board, 3);
  const second = healthOf(board, 3);
  fail(first, 3, 0);
  expect(fail(second, 2, 0)).toEqual([false, true]);
  expect([first.isEjected(0), second.isEjected(0), healthOf(board, 4).isEjected(0)]).toEqual([true, true, false]);
});

const none = { waiting: 0, since: 0, now: 90_000 };

test('five requests in a row without a complete response are reported with their span', () => {
  const health = healthOf();
  for (const [index, how] of (['hung', 'hung', 'cutOff', 'cutOff'] as const).entries()) health.recordBroken(1_000 + index * 10_000, how);
  expect(health.broken(none)).toBeUndefined();
  health.recordBroken(71_000, 'cutOff');
  expect(health.broken(none)).toEqual({ hung: 2, cutOff: 3, seconds: 70, ageSeconds: 89 });
});

test('requests that broke off long ago do not count with later ones', () => {
  const health = healthOf();
  health.recordBroken(1_000, 'cutOff');
  for (let count = 0; count < 4; count += 1) health.recordBroken(400_000 + count, 'cutOff');
  expect(health.broken({ ...none, now: 410_000 })).toBeUndefined();
});

test('a begun response forgets hung requests, and a complete one those that broke off', () => {
  const health = healthOf();
  for (let count = 0; count < 6; count += 1) health.recordBroken(1_000, 'hung');
  health.recordHead();
  expect(health.broken(none)).toBeUndefined();
  for (let count = 0; count < 6; count += 1) health.recordBroken(50_000 + count * 1_000, 'cutOff');
  health.recordHead();
  expect(health.broken(none)).toEqual({ hung: 0, cutOff: 6, seconds: 5, ageSeconds: 40 });
  health.recordComplete();
  expect(health.broken(none)).toBeUndefined();
});

test('requests that wait at a silent replica count, from the start of the silence', () => {
  const health = healthOf();
  expect(health.broken({ waiting: 4, since: 20_000, now: 90_000 })).toBeUndefined();
  expect(health.broken({ waiting: 5, since: 20_000, now: 90_000 })).toEqual({ hung: 5, cutOff: 0, seconds: 70, ageSeconds: 70 });
  health.recordBroken(10_000, 'hung');
  expect(health.broken({ waiting: 4, since: 20_000, now: 90_000 })).toEqual({ hung: 5, cutOff: 0, seconds: 80, ageSeconds: 80 });
});
