import { expect, test } from 'vitest';
import { FakeClock } from '../../../test/support/fake-clock.ts';
import { hangMs, watchForHang } from './hang-watch.ts';

/** A watched process whose heartbeats and CPU waits the test sets. */
function aWatch(limitMs = hangMs) {
  const clock = new FakeClock();
  const process = { heartbeats: 0, waitedMs: 0, isStopped: false };
  let hangs = 0;
  const watched = { heartbeats: () => process.heartbeats, waitedMs: () => process.waitedMs, isStopped: () => process.isStopped };
  const cancel = watchForHang(watched, clock, () => (hangs += 1), limitMs);
  return { clock, process, hangs: () => hangs, cancel };
}

test('a process that stays silent is reported as hung once', async () => {
  const { clock, hangs } = aWatch();
  await clock.advance(hangMs - 1_000);
  expect(hangs()).toBe(0);
  await clock.advance(60_000);
  expect(hangs()).toBe(1);
});

test('a process with regular heartbeats does not hang', async () => {
  const { clock, process, hangs } = aWatch();
  for (let round = 0; round < 20; round += 1) {
    await clock.advance(hangMs - 2_000);
    process.heartbeats += 1;
  }
  expect(hangs()).toBe(0);
});

test('time waiting for a CPU does not count as silence', async () => {
  const { clock, process, hangs } = aWatch();
  for (let second = 0; second < 60; second += 1) {
    process.waitedMs += 900;
    await clock.advance(1_000);
  }
  expect(hangs()).toBe(0);
  await clock.advance(hangMs);
  expect(hangs()).toBe(1);
});

test('a stopped process hangs after two seconds, even on a busy machine', async () => {
  const { clock, process, hangs } = aWatch();
  for (const isStopped of [true, false, true]) {
    process.isStopped = isStopped;
    await clock.advance(1_000);
  }
  expect(hangs()).toBe(0);
  process.waitedMs += 1_000;
  await clock.advance(1_000);
  expect(hangs()).toBe(1);
});

test('a cancelled watch reports nothing', async () => {
  const { clock, hangs, cancel } = aWatch();
  cancel();
  await clock.advance(60_000);
  expect([hangs(), clock.pendingTimers]).toEqual([0, 0]);
});

test('a starting process that gets no CPU has its whole limit of other time', async () => {
  const { clock, process, hangs } = aWatch(60_000);
  process.waitedMs += 1_000;
  await clock.advance(60_000);
  expect(hangs()).toBe(0);
  await clock.advance(1_000);
  expect(hangs()).toBe(1);
});
