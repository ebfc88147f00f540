import { expect, test } from 'vitest';
import { FakeClock } from '../../test/support/fake-clock.ts';
import { toByteStream, type StreamOptions } from './reply-stream.ts';

function options(change: Partial<StreamOptions<string>> = {}): StreamOptions<string> {
  return {
    encode: (item) => new TextEncoder().encode(item),
    ending: () => undefined,
    breakOff: () => undefined,
    clock: new FakeClock(),
    signal: new AbortController().signal,
    ...change,
  };
}

/** Gives the texts, and fails with the error where one stands. */
async function* source(...steps: readonly (string | Error)[]): AsyncGenerator<string> {
  for (const step of steps) {
    if (step instanceof Error) throw step;
    yield step;
  }
}

const encodeError = (error: unknown): Uint8Array => new TextEncoder().encode(`<${String(error)}>`);

const textOf = (stream: ReadableStream<Uint8Array>): Promise<string> => new Response(stream).text();

test('items come out in order, as bytes', async () => {
  expect(await textOf(await toByteStream(source('a', 'é'), options()))).toBe('aé');
});

test('an item is asked for only when the one before it was taken', async () => {
  let asked = 0;
  async function* items(): AsyncGenerator<string> {
    for (;;) {
      asked += 1;
      yield 'x';
    }
  }
  const reader = (await toByteStream(items(), options())).getReader();
  for (let taken = 1; taken <= 5; taken += 1) {
    await reader.read();
    expect(asked).toBeLessThanOrEqual(taken + 1);
  }
  await reader.cancel();
});

test('leaving ends the source', async () => {
  let ended = false;
  async function* items(): AsyncGenerator<string> {
    try {
      for (;;) yield 'x';
    } finally {
      ended = true;
    }
  }
  const reader = (await toByteStream(items(), options())).getReader();
  await reader.read();
  await reader.cancel();
  expect(ended).toBe(true);
});

test('a source that fails before its first item rejects, so that the reply can be an error', async () => {
  await expect(toByteStream(source(new Error('no such thing')), options())).rejects.toThrow('no such thing');
});

test('a source that has nothing yet holds the head back for a second only', async () => {
  const clock = new FakeClock();
  const { promise, resolve } = Promise.withResolvers<string>();
  async function* items(): AsyncGenerator<string> {
    yield await promise;
  }
  const opening = toByteStream(items(), options({ clock }));
  await clock.advance(1_000);
  const stream = await opening;
  resolve('late');
  expect(await textOf(stream)).toBe('late');
});

test('a source that fails later ends with what the error is made into', async () => {
  expect(await textOf(await toByteStream(source('a', new Error('b')), options({ ending: encodeError })))).toBe('a<Error: b>');
});

test('a source that stops because it was told to, or fails without an ending, is broken off', async () => {
  for (const [items, signal] of [
    [source('a', new Error('b')), new AbortController().signal],
    [source('a'), AbortSignal.abort()],
  ] as const) {
    const { promise: brokenOff, resolve: breakOff } = Promise.withResolvers<void>();
    const reader = (await toByteStream(items, options({ signal, breakOff }))).getReader();
    await reader.read();
    void reader.read();
    await expect(brokenOff).resolves.toBeUndefined();
  }
});
