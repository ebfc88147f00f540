import type { Socket } from 'node:net';
import { recordUnread } from '../exchange/request-record.ts';
import type { BalancerContext } from '../exchange/balancer-context.ts';
import { ClientConnection, lastRequestMs } from '../client/client-connection.ts';
import type { Timed } from '../transport/deadlines.ts';
import { Http2Connection } from '../http2/http2-connection.ts';
import { forwardedClient } from '../client/forwarded-client.ts';
import type { BalancerResponse } from '../http1/balancer-response.ts';
import type { ServedConnection } from '../threads/listener.ts';
import type { TlsTerminator } from './tls-terminator.ts';

/** Limit until the client's protocol is known, including the TLS handshake. */
const negotiationMs = 10_000;

/** For clients of plain HTTP at a port that speaks TLS. */
const tlsRequiredMessage = 'This endpoint speaks TLS: use https.\n';
const tlsRequiredResponse = `HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain\r\nContent-Length: ${tlsRequiredMessage.length}\r\nConnection: close\r\n\r\n${tlsRequiredMessage}`;

/** A client's connection whose protocol is detected by its first bytes and, under TLS, by ALPN. */
export class NegotiatedConnection implements ServedConnection, Timed {
  deadlineAt: number;
  readonly #socket: Socket;
  readonly #context: BalancerContext;
  readonly #tls: TlsTerminator | undefined;
  readonly #onClosed: (connection: ServedConnection) => void;
  #served: ServedConnection | undefined;
  #isHandshaking = false;
  #shutdown: 'drain' | 'handOver' | undefined;

  /** `tls`: undefined when the endpoint has none. */
  constructor(socket: Socket, context: BalancerContext, tls: TlsTerminator | undefined, onClosed: (connection: ServedConnection) => void) {
    this.#socket = socket;
    this.#context = context;
    this.#tls = tls;
    this.#onClosed = onClosed;
    this.deadlineAt = context.deadlines.in(negotiationMs);
    context.deadlines.add(this);
    // The cause does not matter: `close` follows.
    socket.on('error', () => undefined);
    socket.on('end', this.#onEnd);
    socket.on('close', this.#onClose);
    peek(socket, (opening) => this.#guarded(() => this.#onOpening(opening)));
  }

  drain(): void {
    this.#shutdown = 'drain';
    // During a handshake the limit stays: a request follows.
    if (!this.#isHandshaking) this.deadlineAt = Math.min(this.deadlineAt, this.#context.deadlines.in(lastRequestMs));
    this.#served?.drain();
  }

  handOver(): void {
    this.#shutdown = 'handOver';
    this.#served?.handOver?.();
  }

  destroy(): void {
    if (this.#served !== undefined) this.#served.destroy();
    else {
      this.#socket.destroy();
      this.#end();
    }
  }

  /** Nothing can be sent before a handshake, and there is no room for a handshake. */
  reject(response: BalancerResponse): void {
    const isTls = this.#tls !== undefined;
    const forwarded = forwardedClient(this.#socket.remoteAddress, isTls, []);
    this.#context.requestEnded(recordUnread(this.#context, { protocol: 'h1', forwarded }, response));
    this.destroy();
  }

  onDeadline(): void {
    this.destroy();
  }

  #onOpening(opening: Opening): void {
    if (this.#tls === undefined) this.#serve(this.#socket, opening === 'http2');
    else if (opening === 'tls') {
      this.#isHandshaking = true;
      this.#tls.secure(this.#socket, (secured) => {
        this.#guarded(() => {
          this.#context.metrics.tlsHandshake(true);
          this.#serve(secured, secured.alpnProtocol === 'h2');
        });
      });
    } else {
      this.#socket.end(tlsRequiredResponse, () => this.#socket.destroy());
    }
  }

  #serve(socket: Socket, isHttp2: boolean): void {
    this.#release();
    const onClosed = (): void => this.#onClosed(this);
    this.#served = isHttp2 ? new Http2Connection(socket, this.#context, onClosed) : new ClientConnection(socket, this.#context, onClosed);
    if (this.#shutdown !== undefined) this.#served[this.#shutdown]?.();
  }

  #release(): void {
    this.#context.deadlines.delete(this);
    this.#socket.off('end', this.#onEnd);
    this.#socket.off('close', this.#onClose);
  }

  readonly #onEnd = (): void => {
    this.#socket.destroy();
  };

  readonly #onClose = (): void => this.#end();

  #end(): void {
    if (this.#isHandshaking) this.#context.metrics.tlsHandshake(false);
    this.#isHandshaking = false;
    this.#release();
    this.#onClosed(this);
  }

  #guarded(work: () => void): void {
    try {
      work();
    } catch (error) {
      this.#context.crashed(error);
      this.#socket.destroy();
    }
  }
}

type Opening = 'tls' | 'http2' | 'other';

/** The first record of a TLS handshake (RFC 8446, section 5.1). */
const handshakeRecord = 0x16;
/** The first bytes of every HTTP/2 client (RFC 9113, section 3.4); no HTTP/1.1 request begins with them. */
const preface = Buffer.from('PRI * HTTP/2.0\r\n');

/** Classifies the first bytes of a connection; undefined when more are needed. Pure. */
export function openingOf(bytes: Buffer): Opening | undefined {
  if (bytes.length === 0) return undefined;
  if (bytes[0] === handshakeRecord) return 'tls';
  const length = Math.min(bytes.length, preface.length);
  if (bytes.compare(preface, 0, length, 0, length) !== 0) return 'other';
  return length === preface.length ? 'http2' : undefined;
}

/** Reads until the protocol is known, then puts all bytes back, pauses the socket and calls `done`. */
function peek(socket: Socket, done: (opening: Opening) => void): void {
  let read: Buffer = Buffer.alloc(0);
  const onData = (bytes: Buffer): void => {
    read = read.length === 0 ? bytes : Buffer.concat([read, bytes]);
    const opening = openingOf(read);
    if (opening === undefined) return;
    socket.off('data', onData);
    socket.pause();
    socket.unshift(read);
    done(opening);
  };
  socket.on('data', onData);
}
