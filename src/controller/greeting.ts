import { connect, type Socket } from 'node:net';
import type { Clock } from '../shared/clock.ts';
import { isObject } from '../shared/is-object.ts';
import { splitLines } from '../shared/lines.ts';
import { identifyProcess, type ProcessIdentity } from '../shared/process-identity.ts';

/** A living process that said hello on its socket. */
export interface Greeting {
  readonly identity: ProcessIdentity;
  /** Of the code that it runs, and of the config file it was started with; undefined where it does not say. */
  readonly version: string | undefined;
  readonly config: string | undefined;
  readonly socket: Socket;
  /** Settles when the connection breaks: the process died, or let go. */
  readonly closed: Promise<void>;
  /** Counts how often it has been heard: as long as that goes up, it lives. */
  readonly heard: () => number;
}

type Hello = Pick<Greeting, 'identity' | 'version' | 'config'>;

/** How to greet. */
export interface GreetOptions {
  readonly clock: Clock;
  readonly timeoutMs: number;
  readonly signal?: AbortSignal;
}

/** Connects to a process's Unix socket and waits for its hello; undefined when nobody is there, or nobody who can be recognised. */
export async function greet(socketPath: string, { clock, timeoutMs, signal }: GreetOptions): Promise<Greeting | undefined> {
  if (signal?.aborted === true) return undefined;
  const { promise: said, resolve } = Promise.withResolvers<Hello | undefined>();
  const { promise: closed, resolve: close } = Promise.withResolvers<void>();
  const socket = connect(socketPath);
  const giveUp = (): void => {
    socket.destroy();
  };
  const cancel = clock.after(timeoutMs, giveUp);
  signal?.addEventListener('abort', giveUp, { once: true });
  const readFirstLine = splitLines((line) => resolve(readHello(line)));
  let heard = 0;
  socket.on('data', readFirstLine);
  // Missing and refusing sockets mean "no such process"; `close` follows.
  socket.on('error', () => undefined);
  socket.once('close', () => {
    resolve(undefined);
    close();
  });
  const hello = await said;
  cancel();
  signal?.removeEventListener('abort', giveUp);
  socket.off('data', readFirstLine);
  // What else it says is not for us; that it says something is.
  socket.on('data', () => {
    heard += 1;
  });
  if (hello !== undefined && !socket.destroyed) return { ...hello, socket, closed, heard: () => heard };
  socket.destroy();
  return undefined;
}

/** What a hello says; undefined for any other line, and for a process that is gone by now. */
function readHello(line: string): Hello | undefined {
  try {
    const message: unknown = JSON.parse(line);
    if (!isObject(message) || typeof message['pid'] !== 'number') return undefined;
    const identity = identifyProcess(message['pid']);
    return identity && { identity, version: textOf(message['version']), config: textOf(message['config']) };
  } catch {
    // Not JSON: whoever that is, it is none of ours.
    return undefined;
  }
}

const textOf = (value: unknown): string | undefined => (typeof value === 'string' ? value : undefined);
