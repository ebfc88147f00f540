import { expect, test } from 'vitest';
import { FakeClock } from '../../test/support/fake-clock.ts';
import { withDeadline, withLateness, unlessAborted } from './deadline.ts';

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

test('without an abort the promise settles as usual', async () => {
  const { signal } = new AbortController();
  expect(await unlessAborted(Promise.resolve(1), signal)).toBe(1);
  await expect(unlessAborted(Promise.reject(new Error('no')), signal)).rejects.toThrow('no');
});

test('an abort ends the wait with its reason', async () => {
  const stop = new AbortController();
  const waiting = unlessAborted(new Promise<never>(() => undefined), stop.signal);
  stop.abort(new Error('enough'));
  await expect(waiting).rejects.toThrow('enough');
});

test('a rejection after the abort is not unhandled', async () => {
  const late = Promise.withResolvers<never>();
  await expect(unlessAborted(late.promise, AbortSignal.abort('enough'))).rejects.toThrow('enough');
  // vitest fails a run with an unhandled rejection.
  late.reject(new Error('late'));
  await expect(late.promise).rejects.toThrow('late');
});
