import type { Socket } from 'node:net';
import { WebSocket } from 'ws';
import type { Clock } from '../shared/clock.ts';
import { messageOf } from '../shared/errors.ts';
import { readBody, UnansweredError, whenConnected, type KubeDeps } from './http-exchange.ts';
import { kubeStatusOf, readStatus, statusError, unansweredError, type KubeAct } from './kube-errors.ts';
import type { KubeAccess } from './login.ts';

/** Messages over one connection, whose first byte names a channel: Kubernetes' protocol inside a WebSocket. */
export interface ChannelSocket {
  readonly protocol: string;
  /** Sends bytes of any length. Calls `done` when they have left this process, or with the error. */
  send(channel: number, bytes: Uint8Array, done: (error?: Error | null) => void): void;
  /** Stops reading. The server notices when its buffers and those of this process are full. */
  pause(): void;
  resume(): void;
  /** Whether the connection keeps this process alive; it does at first. */
  holdProcess(isHeld: boolean): void;
  close(): void;
}

/** Receives the messages and the end of a `ChannelSocket`. */
export interface ChannelListener {
  onMessage(channel: number, bytes: Buffer): void;
  /** Called once and last; `why` is undefined for an ordinary end. */
  onEnd(why: string | undefined): void;
}

/** Covers the connection and the handshake, which the API server forwards to the pod's node. */
const handshakeTimeoutMs = 30_000;
/** Well below the minute after which load balancers cut idle connections. */
const pingMs = 10_000;
/** A connection without an answer to a ping for this time counts as dead. */
const silenceMs = 30_000;
/** The limit while sent bytes wait for a slow program: the server does not see the pings behind them. */
const busySilenceMs = 300_000;
/** Limit for the server's close frame. */
const closeTimeoutMs = 1_000;
/** The server reads one message at a time: small ones limit its memory use, and the delay before a pause. */
const longestSentBytes = 128 * 1024;
/** Kubernetes sends at most 32 KiB. This limit protects against other servers. */
const longestMessageBytes = 64 * 1024 * 1024;

interface ChannelRequest {
  readonly act: KubeAct;
  readonly protocols: readonly string[];
  readonly signal: AbortSignal | undefined;
}

/** Opens a stream to a pod and returns its listener, which may get messages even earlier. Throws as requests do. */
export async function openChannels<T extends ChannelListener>(
  deps: KubeDeps,
  asked: ChannelRequest,
  listen: (socket: ChannelSocket) => T,
): Promise<T> {
  const access = await deps.login.access(asked.signal);
  try {
    return await connect(access, deps, asked, listen);
  } catch (error) {
    if (kubeStatusOf(error)?.code !== 401) throw error;
    deps.login.refused(access);
    return await connect(await deps.login.access(asked.signal), deps, asked, listen);
  }
}

function connect<T extends ChannelListener>(
  access: KubeAccess,
  { clock, fence }: KubeDeps,
  { act, protocols, signal }: ChannelRequest,
  listen: (socket: ChannelSocket) => T,
): Promise<T> {
  signal?.throwIfAborted();
  const { promise, resolve, reject } = Promise.withResolvers<T>();
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
    // Take the socket now: `response` loses it at its end, and the server keeps it open for the next request.
    const connection = response.socket;
    readBody(response, { clock, fence, signal })
      .then((body) => reject(statusError(act, readStatus(response.statusCode ?? 0, body))))
      .catch((error: unknown) => reject(error instanceof UnansweredError ? unansweredError(act, error) : error))
      .finally(() => connection.destroy());
  });
  socket.on('error', (error) => reject(unansweredError(act, error)));
  let connection: Socket | undefined;
  socket.once('upgrade', (response) => {
    connection = response.socket;
  });
  socket.once('open', () => {
    const channels = new OpenChannels(socket, connection, clock);
    const listener = listen(channels);
    socket.on('message', (data: Buffer) => {
      const channel = data[0];
      if (channel !== undefined) listener.onMessage(channel, data.subarray(1));
    });
    socket.on('close', (code: number, reason: Buffer) => listener.onEnd(channels.whyClosed(code, reason.toString('utf8'))));
    resolve(listener);
  });
  promise.then(settled, settled);
  return promise;
}

function webSocketUrl(server: URL, path: string): URL {
  return new URL(`${server.protocol === 'http:' ? 'ws' : 'wss'}://${server.host}${server.pathname.replace(/\/+$/, '')}${path}`);
}

class OpenChannels implements ChannelSocket {
  readonly #socket: WebSocket;
  readonly #connection: Socket | undefined;
  readonly #clock: Clock;
  #lastSeenAt: number;
  #hasSent = false;
  #fault: string | undefined;

  constructor(socket: WebSocket, connection: Socket | undefined, clock: Clock) {
    this.#socket = socket;
    this.#connection = connection;
    this.#clock = clock;
    this.#lastSeenAt = clock.monotonic();
    socket.on('message', () => this.#markSeen());
    socket.on('pong', () => this.#markSeen());
    socket.on('error', (error) => {
      this.#fault ??= messageOf(error);
    });
    socket.once(
      'close',
      clock.every(pingMs, () => this.#ping()),
    );
  }

  get protocol(): string {
    return this.#socket.protocol;
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
    // A paused socket would not show the server's close frame.
    this.#socket.resume();
    const cancel = this.#clock.after(closeTimeoutMs, () => this.#socket.terminate());
    this.#socket.once('close', cancel);
  }

  /** Undefined for an ordinary end. 1005: closed without a code, as API servers do; 1006: the connection broke. */
  whyClosed(code: number, words: string): string | undefined {
    if (this.#fault !== undefined) return this.#fault;
    if (code === 1000 || code === 1005) return undefined;
    return words === '' ? `the connection was cut (${code})` : `${words} (${code})`;
  }

  #markSeen(): void {
    this.#lastSeenAt = this.#clock.monotonic();
    this.#hasSent = this.#socket.bufferedAmount > 0;
  }

  #ping(): void {
    // While reading is paused, pongs are not seen either.
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
