import { expect, test } from 'vitest';
import { FakeClock } from './fake-clock.ts';

test('timers fire in the order they fall due, at their own time', async () => {
  const clock = new FakeClock(0);
  const fired: string[] = [];
  clock.after(30, () => fired.push(`late at ${clock.now()}`));
  clock.after(10, () => fired.push(`early at ${clock.now()}`));
  clock.every(20, () => fired.push(`every at ${clock.now()}`));
  await clock.advance(45);
  expect(fired).toEqual(['early at 10', 'every at 20', 'late at 30', 'every at 40']);
});

test('work started by one timer runs before the next timer fires', async () => {
  const clock = new FakeClock(0);
  const seen: string[] = [];
  const worker = (async () => {
    await clock.sleep(10);
    await Promise.resolve();
    seen.push('slept 10');
    await clock.sleep(10);
    seen.push(`slept 20 at ${clock.now()}`);
  })();
  clock.after(15, () => seen.push('timer at 15'));
  await clock.advance(60_000);
  await worker;
  expect(seen).toEqual(['slept 10', 'timer at 15', 'slept 20 at 20']);
});

test('cancelled timers never fire; an aborted sleep ends and leaves no timer', async () => {
  const clock = new FakeClock();
  let fired = false;
  const cancel = clock.after(10, () => {
    fired = true;
  });
  cancel();
  const stop = new AbortController();
  const sleeping = clock.sleep(1_000_000, stop.signal);
  expect(clock.pendingTimers).toBe(1);
  stop.abort();
  await sleeping;
  await clock.advance(100);
  expect({ fired, pending: clock.pendingTimers }).toEqual({ fired: false, pending: 0 });
});

test('a jump of the wall time moves no timer', async () => {
  const clock = new FakeClock(0);
  let fired = false;
  clock.after(1_000, () => {
    fired = true;
  });
  clock.jumpWallTime(3_600_000);
  await clock.advance(999);
  expect({ fired, now: clock.now() }).toEqual({ fired: false, now: 3_600_999 });
  await clock.advance(1);
  expect(fired).toBe(true);
});

test('advanceUntil returns the elapsed time, and throws at its limit', async () => {
  const clock = new FakeClock();
  let done = false;
  clock.after(250, () => {
    done = true;
  });
  expect(await clock.advanceUntil(() => done)).toBe(300);
  await expect(clock.advanceUntil(() => false, 1_000)).rejects.toThrow('after 1000 ms');
});
