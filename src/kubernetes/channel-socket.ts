import type { Socket } from 'node:net';
import { WebSocket } from 'ws';
import type { Clock } from '../shared/clock.ts';
import { messageOf } from '../shared/errors.ts';
import { readBody, UnansweredError, whenConnected, type KubeDeps } from './http-exchange.ts';
import { readStatus, statusError, unansweredError, type KubeAct } from './kube-errors.ts';
import type { KubeAccess } from './login.ts';

/**
 * Messages whose first byte names a channel, over one connection: the protocol that Kubernetes runs inside a WebSocket.
 */
export interface ChannelSocket {
  /** The protocol that the server chose. */
  readonly protocol: string;
  /** Sends bytes of any length. Calls `done` when they have left this process, or with the error that prevented it. */
  send(channel: number, bytes: Uint8Array, done: (error?: Error | null) => void): void;
  /** Stops reading all channels. The server notices once its buffers and those of this process are full. */
  pause(): void;
  resume(): void;
  /** Whether the connection keeps this process alive; it does at first. */
  holdProcess(isHeld: boolean): void;
  close(): void;
}

/** Receives the messages and the end of a `ChannelSocket`. */
export interface ChannelListener {
  onMessage(channel: number, bytes: Buffer): void;
  /** Called once; `why` is undefined for an ordinary end. No message comes afterwards. */
  onEnd(why: string | undefined): void;
}

/** For the connection and the handshake, which the API server forwards to the pod's node. */
const handshakeTimeoutMs = 30_000;
/** Well below the minute after which load balancers cut idle connections. */
const pingMs = 10_000;
/** Without an answer to a ping for that long, the connection counts as dead. */
const silenceMs = 30_000;
/**
 * Applies while sent bytes still wait for the server. It does not see pings then, and a program that reads slowly is
 * not a broken connection.
 */
const busySilenceMs = 300_000;
/** How long to wait for the server to close as well. */
const closeTimeoutMs = 1_000;
/** The server reads one message at a time. Small messages keep its memory use, and the delay before a pause, small. */
const longestSentBytes = 128 * 1024;
/** Messages of Kubernetes are at most 32 KiB. This limit protects against a server that is not Kubernetes. */
const longestMessageBytes = 64 * 1024 * 1024;

/**
 * Opens a stream below the path of a pod. Throws as requests do. `listener` may get messages even before this settles.
 */
export async function openChannels(
  deps: KubeDeps,
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
  { clock, fence }: KubeDeps,
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
    // Take the socket now: afterwards `response` no longer names it, and the server keeps it open for the next request.
    const connection = response.socket;
    readBody(response, { clock, fence, signal })
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
  #lastSeenAt: number;
  #hasSent = false;
  #isOpen = false;
  #fault: string | undefined;

  constructor(socket: WebSocket, clock: Clock, listener: ChannelListener) {
    this.#socket = socket;
    this.#clock = clock;
    this.#lastSeenAt = clock.monotonic();
    socket.on('message', (data: Buffer) => {
      this.#markSeen();
      const channel = data[0];
      if (channel !== undefined) listener.onMessage(channel, data.subarray(1));
    });
    socket.on('pong', () => this.#markSeen());
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
    this.#markSeen();
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
    this.#markSeen();
    this.#socket.resume();
  }

  holdProcess(isHeld: boolean): void {
    if (isHeld) this.#connection?.ref();
    else this.#connection?.unref();
  }

  close(): void {
    if (this.#socket.readyState === WebSocket.CLOSED) return;
    this.#socket.close(1000);
    // A paused socket would not show the server's close frame. Waits at most `closeTimeoutMs` for that frame.
    this.#socket.resume();
    const cancel = this.#clock.after(closeTimeoutMs, () => this.#socket.terminate());
    this.#socket.once('close', cancel);
  }

  /** 1005: closed without a code, as API servers do; 1006: the connection broke. */
  #whyClosed(code: number, words: string): string | undefined {
    if (this.#fault !== undefined) return this.#fault;
    if (code === 1000 || code === 1005) return undefined;
    return words === '' ? `the connection was cut (${code})` : `${words} (${code})`;
  }

  #markSeen(): void {
    this.#lastSeenAt = this.#clock.monotonic();
    this.#hasSent = this.#socket.bufferedAmount > 0;
  }

  #ping(): void {
    // While reading is paused on purpose, pongs are not seen either.
    if (this.#socket.readyState !== WebSocket.OPEN || this.#socket.isPaused) return;
    const silentForMs = this.#clock.monotonic() - this.#lastSeenAt;
    if (silentForMs <= (this.#hasSent ? busySilenceMs : silenceMs)) {
      this.#socket.ping();
      return;
    }
    this.#fault = `nothing came for ${Math.round(silentForMs / 1000)} s`;
    this.#socket.terminate();
  }
}
