import type { Socket } from 'node:net';
import { WebSocket } from 'ws';
import type { Clock } from '../shared/clock.ts';
import { messageOf } from '../shared/errors.ts';
import { readBody, UnansweredError, whenConnected, type ExchangeDeps } from './http-exchange.ts';
import { readStatus, statusError, unansweredError, type KubeAct } from './kube-errors.ts';
import type { KubeAccess } from './login.ts';
import type { RestDeps } from './rest.ts';

/** Messages whose first byte names a channel, over one connection: what Kubernetes makes of a WebSocket. */
export interface ChannelSocket {
  /** The protocol that the server chose. */
  readonly protocol: string;
  /** Sends bytes of any length; calls `done` when they have left this process, or cannot. */
  send(channel: number, bytes: Uint8Array, done: (error?: Error | null) => void): void;
  /** Stops reading, of all channels; the server notices after what its and our buffers hold. */
  pause(): void;
  resume(): void;
  /** Whether this process waits for the connection before it ends by itself; it does at first. */
  holdProcess(isHeld: boolean): void;
  close(): void;
}

/** Who gets what comes. */
export interface ChannelListener {
  onMessage(channel: number, bytes: Buffer): void;
  /** Once; `why` is undefined for an ordinary end. Nothing comes afterwards. */
  onEnd(why: string | undefined): void;
}

/** For the connection and the handshake, which goes on to the node of the pod. */
const handshakeTimeoutMs = 30_000;
/** Well below the minute after which load balancers cut what is idle. */
const pingMs = 10_000;
/** Without an answer to a ping for that long the connection is dead. */
const silenceMs = 30_000;
/** While bytes wait to be taken there, the server does not get to see pings: a program that reads slowly is no broken connection. */
const busySilenceMs = 300_000;
/** For the server to close as well. */
const farewellMs = 1_000;
/** A server reads one message at a time; small ones keep its memory, and the wait for a pause, small. */
const longestSentBytes = 128 * 1024;
/** The server's messages are at most 32 KiB; this is against one that is none of Kubernetes. */
const longestMessageBytes = 64 * 1024 * 1024;

/** Opens a stream below the path of a pod. Throws as requests do; what comes goes to `listener`, even before this settles. */
export async function openChannels(
  deps: RestDeps,
  {
    act,
    protocols,
    listener,
    signal,
  }: {
    readonly act: KubeAct;
    readonly protocols: readonly string[];
    readonly listener: ChannelListener;
    readonly signal: AbortSignal | undefined;
  },
): Promise<ChannelSocket> {
  for (let attempt = 0; ; attempt += 1) {
    const access = await deps.login.access(signal);
    const opened = await connect(access, deps, act, protocols, listener, signal);
    if (!('refusal' in opened)) return opened;
    if (opened.refusal.code !== 'SVC_CREDENTIALS' || attempt > 0) throw opened.refusal;
    deps.login.refused(access);
  }
}

type Refusal = { readonly refusal: ReturnType<typeof statusError> };

function connect(
  access: KubeAccess,
  { clock, fence }: RestDeps,
  act: KubeAct,
  protocols: readonly string[],
  listener: ChannelListener,
  signal: AbortSignal | undefined,
): Promise<ChannelSocket | Refusal> {
  signal?.throwIfAborted();
  const { promise, resolve, reject } = Promise.withResolvers<ChannelSocket | Refusal>();
  const fail = (error: unknown): void => {
    reject(error);
    socket.terminate();
  };
  const socket = new WebSocket(webSocketUrl(access.server, act.path), [...protocols], {
    headers: { 'user-agent': 'svc', ...Object.fromEntries(Object.entries(access.headers)) },
    ...(access.auth === undefined ? {} : { auth: access.auth }),
    ...access.tls,
    ...(access.upgradeAgent === undefined ? {} : { agent: access.upgradeAgent }),
    perMessageDeflate: false,
    skipUTF8Validation: true,
    maxPayload: longestMessageBytes,
    finishRequest(request) {
      whenConnected(request, () => {
        try {
          fence.check();
        } catch (error) {
          fail(error);
          return;
        }
        request.end();
      });
    },
  });
  socket.binaryType = 'nodebuffer';
  const exchangeDeps: ExchangeDeps = { clock, fence, signal };
  const onAbort = (): void => fail(signal?.reason);
  const cancelTimer = clock.after(handshakeTimeoutMs, () =>
    fail(unansweredError(act, new Error(`no answer to the handshake within ${handshakeTimeoutMs / 1000} s`))),
  );
  const settled = (): void => {
    cancelTimer();
    signal?.removeEventListener('abort', onAbort);
  };
  signal?.addEventListener('abort', onAbort, { once: true });
  socket.on('unexpected-response', (_request, response) => {
    // Later it would not be known any more which one it was, and the server keeps it for the next request.
    const connection = response.socket;
    readBody(response, exchangeDeps)
      .then((body) => resolve({ refusal: statusError(act, readStatus(response.statusCode ?? 0, body)) }))
      .catch((error: unknown) => reject(error instanceof UnansweredError ? unansweredError(act, error) : error))
      .finally(() => connection.destroy());
  });
  socket.on('error', (error) => reject(unansweredError(act, error)));
  const channels = new OpenChannels(socket, clock, listener);
  socket.once('upgrade', ({ socket: connection }) => channels.carriedBy(connection));
  socket.once('open', () => {
    channels.start();
    resolve(channels);
  });
  promise.then(settled, settled);
  return promise;
}

function webSocketUrl(server: URL, path: string): URL {
  return new URL(`${server.protocol === 'http:' ? 'ws' : 'wss'}://${server.host}${server.pathname.replace(/\/+$/, '')}${path}`);
}

class OpenChannels implements ChannelSocket {
  readonly #socket: WebSocket;
  readonly #clock: Clock;
  #connection: Socket | undefined;
  #heardAt: number;
  #hasSent = false;
  #isOpen = false;
  #fault: string | undefined;

  constructor(socket: WebSocket, clock: Clock, listener: ChannelListener) {
    this.#socket = socket;
    this.#clock = clock;
    this.#heardAt = clock.monotonic();
    socket.on('message', (data: Buffer) => {
      this.#heard();
      const channel = data[0];
      if (channel !== undefined) listener.onMessage(channel, data.subarray(1));
    });
    socket.on('pong', () => this.#heard());
    socket.on('error', (error) => {
      this.#fault ??= messageOf(error);
    });
    socket.on('close', (code: number, reason: Buffer) => {
      if (this.#isOpen) listener.onEnd(this.#whyClosed(code, reason.toString('utf8')));
    });
  }

  get protocol(): string {
    return this.#socket.protocol;
  }

  carriedBy(connection: Socket): void {
    this.#connection = connection;
  }

  start(): void {
    this.#isOpen = true;
    this.#heard();
    const stop = this.#clock.every(pingMs, () => this.#ping());
    this.#socket.once('close', stop);
  }

  send(channel: number, bytes: Uint8Array, done: (error?: Error | null) => void): void {
    const piece = bytes.subarray(0, longestSentBytes);
    const rest = bytes.subarray(longestSentBytes);
    const message = Buffer.allocUnsafe(piece.length + 1);
    message[0] = channel;
    message.set(piece, 1);
    this.#hasSent = true;
    this.#socket.send(message, { binary: true }, (error) => {
      if (error instanceof Error || rest.length === 0) done(error);
      else this.send(channel, rest, done);
    });
  }

  pause(): void {
    this.#socket.pause();
  }

  resume(): void {
    if (!this.#socket.isPaused) return;
    this.#heard();
    this.#socket.resume();
  }

  holdProcess(isHeld: boolean): void {
    if (isHeld) this.#connection?.ref();
    else this.#connection?.unref();
  }

  close(): void {
    if (this.#socket.readyState === WebSocket.CLOSED) return;
    this.#socket.close(1000);
    // Not paused, or the server's farewell would not be seen; one that does not say it is not waited for.
    this.#socket.resume();
    const cancel = this.#clock.after(farewellMs, () => this.#socket.terminate());
    this.#socket.once('close', cancel);
  }

  /** 1005: closed without a code, as API servers do; 1006: the connection broke. */
  #whyClosed(code: number, words: string): string | undefined {
    if (this.#fault !== undefined) return this.#fault;
    if (code === 1000 || code === 1005) return undefined;
    return words === '' ? `the connection was cut (${code})` : `${words} (${code})`;
  }

  #heard(): void {
    this.#heardAt = this.#clock.monotonic();
    this.#hasSent = this.#socket.bufferedAmount > 0;
  }

  #ping(): void {
    // What is not read on purpose is not heard either.
    if (this.#socket.readyState !== WebSocket.OPEN || this.#socket.isPaused) return;
    const silentForMs = this.#clock.monotonic() - this.#heardAt;
    if (silentForMs <= (this.#hasSent ? busySilenceMs : silenceMs)) {
      this.#socket.ping();
      return;
    }
    this.#fault = `nothing came for ${Math.round(silentForMs / 1000)} s`;
    this.#socket.terminate();
  }
}
