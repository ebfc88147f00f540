import { expect, test } from 'vitest';
import { FakeClock } from '../../../test/support/fake-clock.ts';
import { Deadlines, type Timed } from './deadlines.ts';

function watch(deadlines: Deadlines, ms: number): { readonly timed: Timed; readonly fired: () => number } {
  let count = 0;
  const timed = {
    deadlineAt: deadlines.in(ms),
    onDeadline() {
      count += 1;
      timed.deadlineAt = Number.POSITIVE_INFINITY;
    },
  };
  deadlines.add(timed);
  return { timed, fired: () => count };
}

test('a deadline fires after its time and never before', async () => {
  const clock = new FakeClock();
  const deadlines = new Deadlines(clock);
  const { fired } = watch(deadlines, 1_000);
  await clock.advance(1_000);
  expect(fired()).toBe(0);
  await clock.advance(200);
  expect(fired()).toBe(1);
});

test('a deleted deadline does not fire', async () => {
  const clock = new FakeClock();
  const deadlines = new Deadlines(clock);
  const { timed, fired } = watch(deadlines, 100);
  deadlines.delete(timed);
  await clock.advance(1_000);
  expect(fired()).toBe(0);
});

/** Deadlines whose sweeps run when a test starts them. */
function swept() {
  let sweep: (() => void) | undefined;
  let now = 0;
  const deadlines = new Deadlines({
    now: () => now,
    monotonic: () => now,
    sleep: async () => undefined,
    after: () => () => undefined,
    every: (_, fire) => {
      sweep = fire;
      return () => undefined;
    },
  });
  return {
    deadlines,
    stand: (ms: number): void => {
      now += ms;
    },
    run: (ms: number): void => {
      for (const end = now + ms; now < end;) {
        now += 100;
        sweep?.();
      }
    },
  };
}

test('time in which the process stood still does not count', () => {
  const { deadlines, stand, run } = swept();
  const { fired } = watch(deadlines, 1_000);
  stand(5_000);
  run(800);
  expect(fired()).toBe(0);
  run(400);
  expect(fired()).toBe(1);
  expect(deadlines.machineNow).toBe(6_200);
});

test('a deadline set right after a standstill, before any sweep, has its full time', () => {
  const { deadlines, stand, run } = swept();
  stand(5_000);
  const { fired } = watch(deadlines, 1_000);
  run(1_000);
  expect(fired()).toBe(0);
  run(400);
  expect(fired()).toBe(1);
});

test('slightly late sweeps are no standstill: time follows the clock', () => {
  const { deadlines, stand, run } = swept();
  const { fired } = watch(deadlines, 1_000);
  for (let turn = 0; turn < 6; turn += 1) {
    stand(100);
    run(100);
  }
  expect(fired()).toBe(1);
});
