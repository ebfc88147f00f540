import type { Clock } from '../shared/clock.ts';

/** How long a stream's head waits for its first item, ms: a handler that fails at once can then still reply with a proper error. */
const headDelayMs = 1_000;

/** What to send in place of an item that could not be had; undefined breaks the connection off, so that the client sees that it is incomplete. */
export type Ending = (error: unknown) => Uint8Array | undefined;

/** How a stream is sent. */
export interface StreamOptions<Item> {
  readonly encode: (item: Item) => Uint8Array;
  readonly ending: Ending;
  /** Breaks the connection off. */
  readonly breakOff: () => void;
  readonly clock: Clock;
  readonly signal: AbortSignal;
}

/**
 * Turns items into a stream of bytes. Each is asked for when the client has taken what came before it. Rejects when the first item fails at
 * once, with what it failed with.
 */
export async function toByteStream<Item>(items: AsyncIterable<Item>, options: StreamOptions<Item>): Promise<ReadableStream<Uint8Array>> {
  const { encode, ending, breakOff, clock, signal } = options;
  const iterator = items[Symbol.asyncIterator]();
  let first: Promise<IteratorResult<Item>> | undefined = iterator.next();
  const stopWaiting = new AbortController();
  // The stream below asks for the outcome again; until then a failure that comes late must not count as unhandled.
  first.catch(() => undefined);
  await Promise.race([first, clock.sleep(headDelayMs, AbortSignal.any([signal, stopWaiting.signal]))]);
  stopWaiting.abort();

  return new ReadableStream({
    async pull(stream) {
      try {
        const { done, value } = await (first ?? iterator.next());
        first = undefined;
        // Ended because it was told to: what follows is missing, which a clean end would hide.
        if (done !== true) stream.enqueue(encode(value));
        else if (signal.aborted) breakOff();
        else stream.close();
      } catch (error) {
        const last = ending(error);
        if (last === undefined) return breakOff();
        stream.enqueue(last);
        stream.close();
      }
    },
    async cancel() {
      await iterator.return?.();
    },
  });
}
