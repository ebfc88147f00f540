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

test('a deadline is called after its time and never before', async () => {
  const clock = new FakeClock();
  const deadlines = new Deadlines(clock);
  const { fired } = watch(deadlines, 1_000);
  await clock.advance(1_000);
  expect(fired()).toBe(0);
  await clock.advance(200);
  expect(fired()).toBe(1);
});

test('what was forgotten is not called', async () => {
  const clock = new FakeClock();
  const deadlines = new Deadlines(clock);
  const { timed, fired } = watch(deadlines, 100);
  deadlines.delete(timed);
  await clock.advance(1_000);
  expect(fired()).toBe(0);
});

test('after the process stood still its peers get one more round', async () => {
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
  const { fired } = watch(deadlines, 1_000);
  now = 5_000;
  sweep?.();
  expect(fired()).toBe(0);
  now = 5_100;
  sweep?.();
  expect(fired()).toBe(1);
});
