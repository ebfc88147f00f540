import { expect, test } from 'vitest';
import { Semaphore } from './semaphore.ts';

test('a semaphore admits callers in order; failed and aborted callers release their slots', async () => {
  const semaphore = new Semaphore(2);
  const seen: string[] = [];
  const gates = ['a', 'b', 'c', 'd'].map((name) => ({ name, gate: Promise.withResolvers<void>() }));
  const stop = new AbortController();
  const runs = gates.map(({ name, gate }) =>
    semaphore.run(
      async () => {
        seen.push(name);
        await gate.promise;
      },
      name === 'c' ? stop.signal : undefined,
    ),
  );
  await Promise.resolve();
  expect(seen).toEqual(['a', 'b']);
  stop.abort();
  await expect(runs[2]).rejects.toMatchObject({ name: 'AbortError' });
  gates[0]?.gate.reject(new Error('broken'));
  await expect(runs[0]).rejects.toThrow('broken');
  expect(seen).toEqual(['a', 'b', 'd']);
  for (const { gate } of gates) gate.resolve();
  await Promise.all([runs[1], runs[3]]);
});
