import { expect, test } from 'vitest';
import { FakeClock } from '../../test/support/fake-clock.ts';
import { type StreamOptions, toByteStream } from './app.ts';

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

/** Yields the texts. Throws where the list has an error. */
async function* source(...steps: readonly (string | Error)[]): AsyncGenerator<string> {
  for (const step of steps) {
    if (step instanceof Error) throw step;
    yield step;
  }
}

const encodeError = (error: unknown): Uint8Array => new TextEncoder().encode(`<${String(error)}>`);

const textOf = (stream: ReadableStream<Uint8Array>): Promise<string> => new Response(stream).text();

test('items are streamed in order as bytes', async () => {
  expect(await textOf(await toByteStream(source('a', 'é'), options()))).toBe('aé');
});

test('an item is requested only when the client has taken the previous one', async () => {
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

test('cancelling the stream ends the source', async () => {
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

test('a source that fails before its first item rejects', async () => {
  await expect(toByteStream(source(new Error('no such thing')), options())).rejects.toThrow('no such thing');
});

test('a source without items delays the head for at most a second', async () => {
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

test('a source that fails later ends with the encoded error', async () => {
  expect(await textOf(await toByteStream(source('a', new Error('b')), options({ ending: encodeError })))).toBe('a<Error: b>');
});

test('an aborted source, or one that fails without an ending, breaks off the connection', async () => {
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
