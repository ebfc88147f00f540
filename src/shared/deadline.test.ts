import { expect, test } from 'vitest';
import { FakeClock } from '../../test/support/fake-clock.ts';
import { withDeadline, withLateness } from './deadline.ts';

const never = new Promise<never>(() => undefined);
const tooLong = (): Error => new Error('too long');

test('work that ignores its signal is abandoned at the deadline', async () => {
  const clock = new FakeClock();
  let inner: AbortSignal | undefined;
  const result = withDeadline(clock, 1_000, (signal) => ((inner = signal), never), tooLong).catch(String);
  await clock.advance(999);
  expect(inner?.aborted).toBe(false);
  await clock.advance(1);
  expect(await result).toBe('Error: too long');
  expect(inner?.aborted).toBe(true);
});

test('an outer abort ends the work with its own reason', async () => {
  const stop = new AbortController();
  const result = withDeadline(new FakeClock(), 1_000, () => never, tooLong, stop.signal);
  stop.abort(new Error('stopped'));
  await expect(result).rejects.toThrow('stopped');
});

test('late answers are left out and timely ones kept', async () => {
  const clock = new FakeClock();
  const result = withLateness(clock, 1_000, (late) =>
    Promise.all([Promise.resolve('soon'), never].map((answer) => Promise.race([answer, late]))),
  );
  await clock.advance(1_000);
  expect(await result).toEqual(['soon', undefined]);
});

test('an aborted call throws instead of returning partial answers', async () => {
  const stop = new AbortController();
  const result = withLateness(new FakeClock(), 1_000, (late) => late, stop.signal);
  stop.abort(new Error('stopped'));
  await expect(result).rejects.toThrow('stopped');
});
