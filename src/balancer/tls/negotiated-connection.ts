import { tlsRequiredText } from '../exchange/balancer-responses.ts';
import type { Socket } from 'node:net';
import { recordUnread } from '../exchange/request-record.ts';
import type { BalancerContext, RefusalCode } from '../exchange/balancer-context.ts';
import { ClientConnection, lastRequestMs, type ClientOptions } from '../client/client-connection.ts';
import type { Timed } from '../transport/deadlines.ts';
import { Http2Connection } from '../http2/http2-connection.ts';
import { forwardedClient } from '../client/forwarded-client.ts';
import { readProxyHeader, type ProxyHeader } from '../client/proxy-header.ts';
import type { BalancerResponse } from '../http1/balancer-response.ts';
import type { ServedConnection } from '../threads/listener.ts';
import { subjectOf } from './client-subject.ts';
import type { TlsTerminator } from './tls-terminator.ts';

/** Limit until the client's protocol is known, including the TLS handshake. */
const negotiationMs = 10_000;

/** Limit for a whole PROXY header: a proxy sends it at once. */
const proxyHeaderMs = 5_000;

/** For clients of plain HTTP at a port that speaks TLS. */
const tlsRequiredMessage = `${tlsRequiredText}\n`;
const tlsRequiredResponse = `HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain\r\nContent-Length: ${tlsRequiredMessage.length}\r\nConnection: close\r\n\r\n${tlsRequiredMessage}`;

/** What the first bytes of a connection may be. */
interface Expected extends Pick<ClientOptions, 'answer'> {
  /** Undefined when the port has none. */
  readonly tls: TlsTerminator | undefined;
  /** Without TLS. */
  readonly mayBeHttp2: boolean;
  /** The address in it must be allowed. */
  readonly hasProxyHeader: boolean;
}

/**
 * A client's connection that begins with a PROXY header, or whose protocol is detected by its first bytes and, under
 * TLS, by ALPN.
 */
export class NegotiatedConnection implements ServedConnection, Timed {
  deadlineAt: number;
  readonly #socket: Socket;
  readonly #context: BalancerContext;
  readonly #expected: Expected;
  readonly #onClosed: (connection: ServedConnection) => void;
  #served: ServedConnection | undefined;
  /** From the PROXY header. */
  #address: string | undefined;
  #awaitsProxyHeader = false;
  #isHandshaking = false;
  #handshakeFault: string | undefined;
  #shutdown: 'drain' | 'handOver' | undefined;

  constructor(socket: Socket, context: BalancerContext, expected: Expected, onClosed: (connection: ServedConnection) => void) {
    this.#socket = socket;
    this.#context = context;
    this.#expected = expected;
    this.#onClosed = onClosed;
    this.deadlineAt = context.deadlines.in(expected.hasProxyHeader ? proxyHeaderMs : negotiationMs);
    context.deadlines.add(this);
    // The cause does not matter: `close` follows.
    socket.on('error', () => undefined);
    socket.on('end', this.#onEnd);
    socket.on('close', this.#onClose);
    if (expected.hasProxyHeader) this.#readProxyHeader();
    else this.#detect();
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
    const isTls = this.#expected.tls !== undefined;
    const forwarded = forwardedClient(this.#socket.remoteAddress, isTls, []);
    this.#context.requestEnded(recordUnread(this.#context, { protocol: 'h1', forwarded }, response));
    this.destroy();
  }

  onDeadline(): void {
    if (this.#awaitsProxyHeader) this.#refuseHeader();
    this.destroy();
  }

  #readProxyHeader(): void {
    this.#awaitsProxyHeader = true;
    const socket = this.#socket;
    peek(socket, wholeHeader, (header, bytes) => {
      this.#guarded(() => {
        this.#awaitsProxyHeader = false;
        const { admission, deadlines } = this.#context;
        if (header === 'invalid') {
          this.#refuseHeader();
          return this.#refuse();
        }
        this.#address = header.address;
        if (!admission.admits(header.address ?? socket.remoteAddress)) {
          this.#log('address_not_allowed');
          return this.#refuse();
        }
        this.deadlineAt = deadlines.in(negotiationMs);
        if (bytes.length > header.length) socket.unshift(bytes.subarray(header.length));
        return this.#detect();
      });
    });
  }

  #refuseHeader(): void {
    this.#context.metrics.connectionRefused('proxy_header');
    this.#log('bad_proxy_header');
  }

  #log(code: RefusalCode, fault?: string): void {
    const isTls = this.#expected.tls !== undefined;
    this.#context.connectionRefused(forwardedClient(this.#address ?? this.#socket.remoteAddress, isTls, []), code, fault);
  }

  #refuse(): void {
    this.#socket.resetAndDestroy();
    this.#end();
  }

  #detect(): void {
    const { tls, mayBeHttp2 } = this.#expected;
    if (tls === undefined && !mayBeHttp2) return this.#serve(this.#socket, false);
    return peek(this.#socket, openingOf, (opening, bytes) => {
      this.#guarded(() => {
        this.#socket.unshift(bytes);
        this.#onOpening(opening);
      });
    });
  }

  #onOpening(opening: Opening): void {
    const { tls } = this.#expected;
    if (tls === undefined) this.#serve(this.#socket, opening === 'http2');
    else if (opening === 'tls') {
      this.#isHandshaking = true;
      tls.secure(this.#socket, {
        done: (secured) => {
          this.#guarded(() => {
            this.#context.metrics.tlsHandshake(true);
            const subject = tls.needsCertificate ? subjectOf(secured) : undefined;
            this.#serve(secured, secured.alpnProtocol === 'h2', subject);
          });
        },
        failed: (fault) => {
          this.#handshakeFault = fault;
        },
      });
    } else {
      this.#log('tls_required');
      this.#socket.end(tlsRequiredResponse, () => this.#socket.destroy());
    }
  }

  #serve(socket: Socket, isHttp2: boolean, subject?: string): void {
    this.#release();
    const onClosed = (): void => this.#onClosed(this);
    const address = this.#address;
    const { answer } = this.#expected;
    this.#served = isHttp2
      ? new Http2Connection(socket, this.#context, onClosed, { address, subject })
      : new ClientConnection(socket, this.#context, onClosed, { address, answer, subject });
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
    if (this.#isHandshaking) {
      this.#context.metrics.tlsHandshake(false);
      this.#log('tls_handshake_failed', this.#handshakeFault);
    }
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

function wholeHeader(bytes: Buffer): ProxyHeader | 'invalid' | undefined {
  const header = readProxyHeader(bytes);
  return header === 'more' ? undefined : header;
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

/** Reads until `read` finds a result in the first bytes, then pauses the socket and calls `done` with all of them. */
function peek<Result>(socket: Socket, read: (bytes: Buffer) => Result | undefined, done: (result: Result, bytes: Buffer) => void): void {
  let bytes: Buffer = Buffer.alloc(0);
  const onData = (more: Buffer): void => {
    bytes = bytes.length === 0 ? more : Buffer.concat([bytes, more]);
    const result = read(bytes);
    if (result === undefined) return;
    socket.off('data', onData);
    socket.pause();
    done(result, bytes);
  };
  socket.on('data', onData);
  // An earlier call has paused it.
  socket.resume();
}
