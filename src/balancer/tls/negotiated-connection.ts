import type { Socket } from 'node:net';
import { recordUnread } from '../exchange/arrival.ts';
import type { BalancerContext } from '../exchange/balancer-context.ts';
import { ClientConnection, lastRequestMs } from '../client/client-connection.ts';
import type { Timed } from '../transport/deadlines.ts';
import { Http2Connection } from '../http2/http2-connection.ts';
import { forwardedClient } from '../client/forwarded-client.ts';
import type { OwnResponse } from '../http1/own-response.ts';
import type { ServedConnection } from '../threads/listener.ts';
import { peek, type Opening } from './first-bytes.ts';
import type { TlsTerminator } from './tls-terminator.ts';

/** Until it is known what the client speaks, the TLS handshake included. */
const negotiationMs = 10_000;

/** For clients of plain HTTP at a port that speaks TLS. */
const wantsTls = 'This endpoint speaks TLS: use https.\n';
const tlsWanted = `HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain\r\nContent-Length: ${wantsTls.length}\r\nConnection: close\r\n\r\n${wantsTls}`;

/** A client's connection whose protocol is found out by its first bytes and, under TLS, by what both sides can speak (ALPN). */
export class NegotiatedConnection implements ServedConnection, Timed {
  deadlineAt: number;
  readonly #socket: Socket;
  readonly #context: BalancerContext;
  readonly #tls: TlsTerminator | undefined;
  readonly #onClosed: (connection: ServedConnection) => void;
  /** Once it is known what the client speaks. */
  #served: ServedConnection | undefined;
  #isHandshaking = false;
  #goodbye: 'drain' | 'leave' | undefined;

  /** `tls`: undefined when the endpoint has none. */
  constructor(socket: Socket, context: BalancerContext, tls: TlsTerminator | undefined, onClosed: (connection: ServedConnection) => void) {
    this.#socket = socket;
    this.#context = context;
    this.#tls = tls;
    this.#onClosed = onClosed;
    this.deadlineAt = context.deadlines.in(negotiationMs);
    context.deadlines.add(this);
    // What is wrong does not matter: `close` follows.
    socket.on('error', () => undefined);
    socket.on('end', this.#onEnd);
    socket.on('close', this.#onClose);
    peek(socket, (opening) => this.#guarded(() => this.#onOpening(opening)));
  }

  drain(): void {
    this.#goodbye = 'drain';
    // Behind a handshake there is a request.
    if (!this.#isHandshaking) this.deadlineAt = Math.min(this.deadlineAt, this.#context.deadlines.in(lastRequestMs));
    this.#served?.drain();
  }

  leave(): void {
    this.#goodbye = 'leave';
    this.#served?.leave?.();
  }

  destroy(): void {
    if (this.#served !== undefined) this.#served.destroy();
    else {
      this.#socket.destroy();
      this.#end();
    }
  }

  /** Nothing can be said before a handshake, which is what there is no room for. */
  turnAway(response: OwnResponse): void {
    const isTls = this.#tls !== undefined;
    const forwarded = forwardedClient(this.#socket.remoteAddress, isTls, []);
    this.#context.log(recordUnread(this.#context, { protocol: 'h1', forwarded }, response));
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
      this.#socket.end(tlsWanted, () => this.#socket.destroy());
    }
  }

  #serve(socket: Socket, isHttp2: boolean): void {
    this.#release();
    const onClosed = (): void => this.#onClosed(this);
    this.#served = isHttp2 ? new Http2Connection(socket, this.#context, onClosed) : new ClientConnection(socket, this.#context, onClosed);
    if (this.#goodbye !== undefined) this.#served[this.#goodbye]?.();
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

  /** It is over before it was known what the client speaks. */
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
