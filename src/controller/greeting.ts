import { connect, type Socket } from 'node:net';
import type { Clock } from '../shared/clock.ts';
import { splitLines } from '../shared/lines.ts';
import { identifyProcess, type ProcessIdentity } from '../shared/process-identity.ts';

/** A living process that said hello on its socket. */
export interface Greeting {
  readonly identity: ProcessIdentity;
  readonly socket: Socket;
  /** Settles when the connection breaks: the process died, or let go. */
  readonly closed: Promise<void>;
}

/** How to greet. */
export interface GreetOptions {
  readonly clock: Clock;
  readonly timeoutMs: number;
  readonly signal?: AbortSignal;
}

/** Connects to a process's Unix socket and waits for its hello; undefined when nobody is there, or nobody who can be recognised. */
export async function greet(socketPath: string, { clock, timeoutMs, signal }: GreetOptions): Promise<Greeting | undefined> {
  if (signal?.aborted === true) return undefined;
  const { promise: hello, resolve } = Promise.withResolvers<ProcessIdentity | undefined>();
  const { promise: closed, resolve: close } = Promise.withResolvers<void>();
  const socket = connect(socketPath);
  const giveUp = (): void => {
    socket.destroy();
  };
  const cancel = clock.after(timeoutMs, giveUp);
  signal?.addEventListener('abort', giveUp, { once: true });
  const readFirstLine = splitLines((line) => resolve(identityIn(line)));
  socket.on('data', readFirstLine);
  // Missing and refusing sockets mean "no such process"; `close` follows.
  socket.on('error', () => undefined);
  socket.once('close', () => {
    resolve(undefined);
    close();
  });
  const identity = await hello;
  cancel();
  signal?.removeEventListener('abort', giveUp);
  socket.off('data', readFirstLine);
  // What else it says is not for us, but must be read, or the peer would be held up.
  socket.resume();
  if (identity !== undefined && !socket.destroyed) return { identity, socket, closed };
  socket.destroy();
  return undefined;
}

/** The process behind a hello; undefined for any other line. */
function identityIn(line: string): ProcessIdentity | undefined {
  try {
    const message: unknown = JSON.parse(line);
    if (typeof message !== 'object' || message === null || !('pid' in message) || typeof message.pid !== 'number') return undefined;
    return identifyProcess(message.pid);
  } catch {
    // Not JSON: whoever that is, it is none of ours.
    return undefined;
  }
}
