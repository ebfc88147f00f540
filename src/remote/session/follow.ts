import type { Clock } from '../../shared/clock.ts';
import { SvcError } from '../../shared/errors.ts';
import type { SessionMachine } from './session-machine.ts';

/** Waits until the file reaches the offset: from beyond its end, `tail` would take later growth for a new file. */
const script = `while [ ! -e "$1" ] || [ "$(wc -c < "$1")" -lt "$2" ]; do sleep 0.1 2> /dev/null || sleep 1; done
exec tail -c "+$(($2 + 1))" -f -- "$1" 2> /dev/null`;

const pauseMs = 1_000;

const readerPauseMs = 20;

/** Fetching stops with more bytes for the reader. */
const maxWaitingBytes = 4_194_304;

interface Fetched {
  readonly chunks: Buffer[];
  bytes: number;
  failure?: unknown;
}

/** Bytes of a machine's growing file from `offset` on, until the signal aborts. Continues after a broken connection. */
export async function* followRemoteFile(
  machine: () => Promise<SessionMachine>,
  path: string,
  offset: number,
  clock: Clock,
  signal: AbortSignal,
): AsyncGenerator<Buffer> {
  const over = new AbortController();
  const fetched: Fetched = { chunks: [], bytes: 0 };
  let changed = Promise.withResolvers<void>();
  const wake = (): void => changed.resolve();
  const fetching = fetchAll({ machine, path, offset, clock, fetched, wake }, AbortSignal.any([signal, over.signal])).catch(
    (error: unknown) => {
      fetched.failure = error;
      wake();
    },
  );
  signal.addEventListener('abort', wake, { once: true });
  try {
    while (!signal.aborted) {
      changed = Promise.withResolvers<void>();
      const next = fetched.chunks.shift();
      if (next !== undefined) {
        fetched.bytes -= next.length;
        yield next;
      } else if (fetched.failure !== undefined) {
        throw fetched.failure;
      } else {
        await changed.promise;
      }
    }
  } finally {
    signal.removeEventListener('abort', wake);
    over.abort();
    await fetching;
  }
}

interface Fetch {
  readonly machine: () => Promise<SessionMachine>;
  readonly path: string;
  readonly offset: number;
  readonly clock: Clock;
  readonly fetched: Fetched;
  readonly wake: () => void;
}

async function fetchAll({ machine, path, offset, clock, fetched, wake }: Fetch, signal: AbortSignal): Promise<void> {
  let position = offset;
  while (!signal.aborted) {
    const enough = new AbortController();
    const onStdout = (bytes: Buffer): void => {
      // Bytes beyond the limit are fetched again later.
      if (enough.signal.aborted) return;
      position += bytes.length;
      fetched.chunks.push(Buffer.from(bytes));
      fetched.bytes += bytes.length;
      if (fetched.bytes > maxWaitingBytes) enough.abort();
      wake();
    };
    const argv = ['sh', '-c', script, 'sh', path, String(position)];
    const request = {
      argv,
      env: {},
      input: Buffer.alloc(0),
      onStdout,
      onStderr: () => undefined,
      signal: AbortSignal.any([signal, enough.signal]),
    };
    try {
      await (await machine()).session(request, { lane: 'stream', isRepeatable: false });
    } catch (error) {
      // A wrong key or host key is not transient.
      if (!signal.aborted && error instanceof SvcError && error.kind !== 'transient') throw error;
    }
    if (!enough.signal.aborted) await clock.sleep(pauseMs, signal);
    else await untilRead(fetched, clock, signal);
  }
}

async function untilRead(fetched: Fetched, clock: Clock, signal: AbortSignal): Promise<void> {
  while (fetched.bytes > maxWaitingBytes / 2 && !signal.aborted) await clock.sleep(readerPauseMs, signal);
}
