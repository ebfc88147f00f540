import { constants, type ServerHttp2Stream } from 'node:http2';
import type { BalancerContext } from '../exchange/balancer-context.ts';
import type { Timed } from '../transport/deadlines.ts';
import type { ExchangeClient } from '../exchange/exchange-client.ts';
import { Exchange } from '../exchange/exchange.ts';
import type { Trailers } from '../http1/chunked-decoder.ts';
import type { ForwardedClient } from '../http1/forward-request.ts';
import type { RequestHead } from '../http1/request-head.ts';
import { Http2Reply } from './http2-reply.ts';
import type { UsefulWork } from './useful-work.ts';

/** How long the last bytes of a broken response may take to leave. */
const lingerMs = 2_000;

/** A request that arrived on a stream. */
export interface Http2Request {
  readonly stream: ServerHttp2Stream;
  readonly head: RequestHead;
  /** The request has no body. */
  readonly isEnded: boolean;
  /** Complete when the stream's body has ended. */
  trailers: Trailers;
}

/** What a stream needs from its connection. */
export interface Http2ClientOwner {
  readonly context: BalancerContext;
  readonly forwarded: ForwardedClient;
  readonly work: UsefulWork;
  forget(client: Http2Client): void;
}

/** One request of a client over HTTP/2, and its response. */
export class Http2Client implements ExchangeClient, Timed {
  readonly forwarded: ForwardedClient;
  readonly reply: Http2Reply;
  readonly protocol = 'h2';
  deadlineAt: number;
  readonly #stream: ServerHttp2Stream;
  readonly #owner: Http2ClientOwner;
  #exchange: Exchange | undefined;

  constructor(request: Http2Request, owner: Http2ClientOwner) {
    const { stream, head } = request;
    this.#stream = stream;
    this.#owner = owner;
    this.forwarded = owner.forwarded;
    this.reply = new Http2Reply(stream, head, owner.work);
    const { context } = owner;
    this.deadlineAt = context.deadlines.in(context.config.idleTimeoutMs);
    stream.on('end', () => this.#guarded(() => this.#onEnd(request.trailers)));
    stream.on('drain', () => this.#guarded(() => this.#exchange?.clientDrained()));
    // `aborted` comes at once, but not when our side has ended. `close` always comes, after everything was read.
    stream.on('aborted', () => this.#guarded(() => this.#onGone()));
    stream.on('close', () => this.#guarded(() => this.#onClose()));
    context.deadlines.add(this);
    this.#guarded(() => this.#begin(request));
  }

  #begin({ stream, head, isEnded, trailers }: Http2Request): void {
    const exchange = new Exchange(this.#owner.context, this, head);
    this.#exchange = exchange;
    // An empty body may have ended before the request began. Then `end` was emitted already.
    if (isEnded || stream.readableEnded) exchange.requestEnd(trailers);
    exchange.advance();
    this.#stream.on('data', (chunk: Buffer) => this.#guarded(() => this.#onData(chunk)));
  }

  /** Bytes of the request's body that were read off the connection and not passed on. */
  get heldBytes(): number {
    return this.#stream.readableLength;
  }

  destroy(): void {
    this.#onGone();
    this.#stream.close(constants.NGHTTP2_INTERNAL_ERROR);
  }

  // ---- ExchangeClient

  pauseReading(): void {
    this.#stream.pause();
  }

  resumeReading(): void {
    if (this.#stream.isPaused()) this.#stream.resume();
  }

  exchangeDone(): void {
    const isRequestRead = this.#exchange?.isRequestRead === true;
    this.#exchange = undefined;
    const { deadlines, config } = this.#owner.context;
    this.deadlineAt = deadlines.in(config.idleTimeoutMs);
    if (isRequestRead) return;
    // Once the client has the whole response, this asks it to stop sending its request (RFC 9113, section 8.1).
    this.reply.onSent(() => this.#stream.close(constants.NGHTTP2_NO_ERROR));
    this.resumeReading();
  }

  exchangeBroken(): void {
    this.#exchange = undefined;
    this.reply.breakOff();
    const stream = this.#stream;
    if (stream.writableLength === 0 || stream.destroyed) stream.close(constants.NGHTTP2_INTERNAL_ERROR);
    else {
      stream.write('', () => stream.close(constants.NGHTTP2_INTERNAL_ERROR));
      this.deadlineAt = this.#owner.context.deadlines.in(lingerMs);
    }
  }

  // ---- Timed

  onDeadline(): void {
    this.#guarded(() => {
      if (this.#exchange !== undefined) this.#exchange.onDeadline(this.#stream.writableNeedDrain);
      else this.destroy();
    });
  }

  // ---- Events of the stream

  #onData(chunk: Buffer): void {
    this.#owner.work.piece(chunk.length);
    const exchange = this.#exchange;
    exchange?.requestBody(chunk, 0, chunk.length);
    exchange?.advance();
  }

  #onEnd(trailers: Trailers): void {
    const exchange = this.#exchange;
    if (exchange === undefined || exchange.isRequestRead) return;
    // A stream that is closed already was reset: the bytes read are not all of its body.
    if (this.#stream.closed) return this.#onGone();
    exchange.requestEnd(trailers);
    return exchange.advance();
  }

  #onGone(): void {
    const exchange = this.#exchange;
    this.#exchange = undefined;
    exchange?.clientGone();
  }

  #onClose(): void {
    // The bytes were part of a request, though the client cancelled it.
    this.#owner.work.piece(this.heldBytes);
    this.#owner.context.deadlines.delete(this);
    this.#owner.forget(this);
    this.#onGone();
  }

  /** An unexpected error in the work on one stream must not end the others. */
  #guarded(work: () => void): void {
    try {
      work();
    } catch (error) {
      this.#owner.context.crashed(error);
      const exchange = this.#exchange;
      this.#exchange = undefined;
      this.#stream.close(constants.NGHTTP2_INTERNAL_ERROR);
      try {
        exchange?.clientGone();
      } catch (second) {
        this.#owner.context.crashed(second);
      }
    }
  }
}
