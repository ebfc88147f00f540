import { connect, type Socket } from 'node:net';
import type { Clock } from '../shared/clock.ts';
import { isObject, parseJson } from '../shared/json.ts';
import { splitLines } from '../shared/lines.ts';
import { identifyProcess, type ProcessIdentity } from '../shared/system/process-identity.ts';

/** A live process that sent its hello over its socket. */
export interface Greeting {
  readonly identity: ProcessIdentity;
  /** Version of the code that it runs, and the config it was started with; undefined where the hello lacks them. */
  readonly version: string | undefined;
  readonly config: string | undefined;
  readonly socket: Socket;
  /** Settles when the connection breaks: the process died or closed it. */
  readonly closed: Promise<void>;
  /** Number of heartbeats so far. It grows while the process lives. */
  readonly heartbeats: () => number;
  /** The process that takes its place if it dies; undefined without one. */
  readonly standby: () => ProcessIdentity | undefined;
}

type Hello = Pick<Greeting, 'identity' | 'version' | 'config'>;

interface GreetOptions {
  readonly clock: Clock;
  readonly timeoutMs: number;
  readonly signal?: AbortSignal;
}

/** Connects to a process's Unix socket and waits for its hello. Undefined without an answer or a valid hello. */
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
  let heartbeats = 0;
  let standby: ProcessIdentity | undefined;
  socket.on(
    'data',
    splitLines((line) => {
      // Any line counts as a heartbeat.
      heartbeats += 1;
      const message = parseJson(line);
      resolve(readHello(message));
      standby = readStandby(message) ?? standby;
    }),
  );
  // A missing or refusing socket: no process. `close` follows.
  socket.on('error', () => undefined);
  socket.once('close', () => {
    resolve(undefined);
    close();
  });
  const hello = await said;
  cancel();
  signal?.removeEventListener('abort', giveUp);
  if (hello !== undefined && !socket.destroyed) return { ...hello, socket, closed, heartbeats: () => heartbeats, standby: () => standby };
  socket.destroy();
  return undefined;
}

/** Undefined for any other message, and for a process that has ended since. */
function readHello(message: unknown): Hello | undefined {
  if (!isObject(message) || typeof message['pid'] !== 'number') return undefined;
  const identity = identifyProcess(message['pid']);
  return identity && { identity, version: textOf(message['version']), config: textOf(message['config']) };
}

/** From a balancer's hello or its report `standby`; undefined for any other message. */
function readStandby(message: unknown): ProcessIdentity | undefined {
  if (!isObject(message)) return undefined;
  const pid = message['type'] === 'standby' ? message['pid'] : message['standby'];
  return typeof pid === 'number' ? identifyProcess(pid) : undefined;
}

const textOf = (value: unknown): string | undefined => (typeof value === 'string' ? value : undefined);
