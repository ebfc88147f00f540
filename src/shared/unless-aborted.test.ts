import { expect, test } from 'vitest';
import { unlessAborted } from './unless-aborted.ts';

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
