import type { Socket } from 'node:net';
import { recordUnread, type UnreadRequest } from '../exchange/request-record.ts';
import type { BalancerContext } from '../exchange/balancer-context.ts';
import type { Timed } from '../transport/deadlines.ts';
import type { ExchangeClient } from '../exchange/exchange-client.ts';
import { Exchange } from '../exchange/exchange.ts';
import { forwardedClient } from './forwarded-client.ts';
import { noTrailers, type Trailers } from '../http1/chunked-decoder.ts';
import type { Fault } from '../http1/faults.ts';
import type { ForwardedClient } from '../http1/forward-request.ts';
import { HandleTransport } from '../transport/handle-transport.ts';
import { Http1Reply, type Http1ReplyOwner } from './http1-reply.ts';
import { writeBalancerResponse, type BalancerResponse } from '../http1/balancer-response.ts';
import type { RequestHead } from '../http1/request-head.ts';
import { RequestParser, type RequestLine, type RequestSink } from '../http1/request-parser.ts';
import { MessageWriter } from '../transport/message-writer.ts';
import * as own from '../exchange/balancer-responses.ts';
import { isEncrypted, StreamTransport } from '../transport/stream-transport.ts';
import type { Transport, TransportUser } from '../transport/transport.ts';

/** From the first byte of a head to its last. */
const headTimeoutMs = 10_000;
/** A response that asks a client to stop sending is lost if the connection closes before the client has read it. */
const lingerMs = 2_000;
/**
 * How long a connection stays open for one more request when the process is to end. A busy client sends one in this
 * time, and the response announces the end. Other clients rarely notice it.
 */
export const lastRequestMs = 2_000;
/** Limit of requests read before the current one is answered; beyond it, the balancer stops reading the client. */
const maxPipelinedBytes = 65_536;

/** What is special about a connection. */
export interface ClientOptions {
  /** From the PROXY header; without one, the connection has the client's address. */
  readonly address?: string | undefined;
  /** Of the client's verified certificate, if it needs one. */
  readonly subject?: string | undefined;
  /** Answers each request; without it, requests go to replicas. */
  readonly answer?: ((head: RequestHead) => BalancerResponse) | undefined;
}

/** One connection of a client: reads requests off it one after the other and gives each to an exchange. */
export class ClientConnection implements RequestSink, ExchangeClient, Http1ReplyOwner, TransportUser, Timed {
  readonly forwarded: ForwardedClient;
  readonly protocol = 'h1';
  readonly reply: Http1Reply;
  deadlineAt: number;
  readonly #transport: Transport;
  readonly #context: BalancerContext;
  readonly #onClosed: (connection: ClientConnection) => void;
  readonly #answer: ClientOptions['answer'];
  readonly #parser: RequestParser;
  readonly #writer: MessageWriter;
  #exchange: Exchange | undefined;
  /** `lingering`: the last response was sent; further bytes are discarded until the client closes. */
  #state: 'open' | 'lingering' | 'closed' = 'open';
  /** Read but not parsed: belongs to the requests after the current one. */
  #pipelined: Buffer | undefined;
  #isConsuming = false;
  /** The connection was upgraded and carries plain bytes. */
  #isTunnel = false;
  #isClosing = false;
  /** See `#waitUntilSent`. */
  #isOverdue = false;

  constructor(
    socket: Socket,
    context: BalancerContext,
    onClosed: (connection: ClientConnection) => void,
    { address, answer, subject }: ClientOptions,
  ) {
    this.#context = context;
    this.#answer = answer;
    this.#onClosed = onClosed;
    const isSecure = isEncrypted(socket);
    this.#transport = isSecure ? new StreamTransport(socket) : new HandleTransport(socket);
    this.#parser = new RequestParser(this, context.headLimits);
    this.#writer = new MessageWriter(this.#transport);
    this.reply = new Http1Reply(this.#writer, this);
    this.forwarded = forwardedClient(address ?? this.#transport.remoteAddress, isSecure, context.trustedProxies, subject);
    this.deadlineAt = context.deadlines.in(headTimeoutMs);
    context.deadlines.add(this);
    this.#transport.start(this);
  }

  /** Keeps an idle connection open for a while: closing it at once could cut off a request that is on its way. */
  drain(): void {
    this.#isClosing = true;
    if (this.#exchange === undefined && this.#state === 'open' && !this.#parser.isInHead) this.#waitForRequest();
  }

  /** Closes it at once. A WebSocket client first gets a going-away frame, where a frame can be inserted. */
  destroy(): void {
    if (this.#isTunnel && this.#state === 'open') {
      this.reply.sendGoingAway();
      this.#transport.end();
    }
    this.#transport.destroy();
    this.#guarded(() => this.#onClose());
  }

  reject(response: BalancerResponse): void {
    this.#reply(response);
  }

  // ---- RequestSink

  requestHead(head: RequestHead): void {
    if (this.#answer !== undefined) return this.#reply(this.#answer(head), { head });
    this.reply.begin(head);
    this.#exchange = new Exchange(this.#context, this, head);
    return undefined;
  }

  body(bytes: Buffer, from: number, to: number): void {
    this.#exchange?.requestBody(bytes, from, to);
  }

  requestEnd(trailers: Trailers): void {
    this.#exchange?.requestEnd(trailers);
  }

  requestFault(fault: Fault, line?: RequestLine): void {
    if (this.#exchange !== undefined) this.#exchange.requestFault(fault);
    else if (this.#state === 'open') this.#reply(own.refusal(fault), { line });
  }

  // ---- ExchangeClient

  pauseReading(): void {
    this.#transport.pause();
    this.#context.pausedClients.add(this.#transport);
  }

  resumeReading(): void {
    const waits = this.#pipelined !== undefined && this.#pipelined.length >= maxPipelinedBytes;
    if (!waits) this.#readOn();
  }

  exchangeDone(): void {
    const { isPersistent } = this.reply;
    this.#exchange = undefined;
    if (this.#state !== 'open') return;
    if (!isPersistent) this.#closeAfterReply();
    else {
      this.#waitForRequest();
      if (!this.#isConsuming) this.#goOn();
    }
  }

  exchangeBroken(): void {
    this.reply.breakOff();
    this.#exchange = undefined;
    this.#state = 'closed';
    // A reset, sent after the written bytes: a normal end would make a body without a length look complete.
    this.deadlineAt = this.#context.deadlines.in(lingerMs);
    this.#transport.reset();
  }

  #readOn(): void {
    if (!this.#transport.isPaused) return;
    this.#context.pausedClients.delete(this.#transport);
    this.#transport.resume();
  }

  #waitForRequest(): void {
    const { deadlines, config } = this.#context;
    this.deadlineAt = deadlines.in(this.#isClosing ? Math.min(lastRequestMs, config.keepAliveTimeoutMs) : config.keepAliveTimeoutMs);
  }

  /**
   * The time for a next request is over, but the client still reads its last response: the limit for silence applies.
   */
  #waitUntilSent(): void {
    this.#isOverdue = true;
    this.deadlineAt = this.#context.deadlines.in(this.#context.config.idleTimeoutMs);
  }

  // ---- Http1ReplyOwner

  get isRequestRead(): boolean {
    return this.#exchange?.isRequestRead === true;
  }

  get isDraining(): boolean {
    return this.#context.counters.isDraining;
  }

  switchProtocols(): void {
    this.#isTunnel = true;
    this.#parser.becomeRaw();
    const early = this.#pipelined;
    this.#pipelined = undefined;
    if (early !== undefined) {
      this.#parser.feed(early, 0);
      this.#exchange?.advance();
    }
    this.#readOn();
  }

  // ---- Timed

  onDeadline(): void {
    this.#guarded(() => {
      if (this.#exchange !== undefined) this.#exchange.onDeadline(this.#transport.isBlocked);
      else if (this.#state === 'open' && this.#parser.isInHead) this.#reply(own.requestTimeout);
      else if (this.#state === 'open' && this.#transport.isBlocked && !this.#isOverdue) this.#waitUntilSent();
      else this.destroy();
    });
  }

  // ---- TransportUser

  received(chunk: Buffer): void {
    if (this.#state !== 'open') return;
    try {
      if (this.#mustWait) this.#bufferPipelined(chunk);
      else this.#consume(chunk);
    } catch (error) {
      this.#crash(error);
    }
  }

  get #mustWait(): boolean {
    return !this.#isTunnel && (this.#pipelined !== undefined || this.#exchange?.isRequestRead === true);
  }

  /** Processes one read: all requests that can be answered at once, and the beginning of one that cannot. */
  #consume(chunk: Buffer): void {
    this.#isConsuming = true;
    const wasInHead = this.#parser.isInHead;
    let at = 0;
    while (at < chunk.length && this.#state === 'open') {
      if (this.#mustWait || (this.#exchange === undefined && this.#transport.isBlocked)) {
        this.#bufferPipelined(chunk.subarray(at));
        break;
      }
      at = this.#parser.feed(chunk, at);
      this.#exchange?.advance();
    }
    this.#isConsuming = false;
    if (this.#parser.isInHead && !(wasInHead && at === chunk.length)) this.deadlineAt = this.#context.deadlines.in(headTimeoutMs);
  }

  #bufferPipelined(bytes: Buffer): void {
    this.#pipelined = this.#pipelined === undefined ? Buffer.from(bytes) : Buffer.concat([this.#pipelined, bytes]);
    if (this.#pipelined.length >= maxPipelinedBytes) this.pauseReading();
  }

  #goOn(): void {
    const bytes = this.#pipelined;
    this.#pipelined = undefined;
    this.#readOn();
    if (bytes !== undefined) this.#consume(bytes);
  }

  drained(): void {
    this.#guarded(() => {
      if (this.#exchange !== undefined) this.#exchange.clientDrained();
      else if (this.#state === 'open') {
        this.#isOverdue = false;
        if (!this.#parser.isInHead) this.#waitForRequest();
        this.#goOn();
      }
    });
  }

  ended(): void {
    this.#guarded(() => this.#onEnd());
  }

  closed(): void {
    this.#guarded(() => this.#onClose());
  }

  #onEnd(): void {
    if (this.#isTunnel && this.#exchange !== undefined) return this.#exchange.requestEnd(noTrailers);
    // A client that closed looks like one that only sends no more. Assume the first: no replica works in vain.
    if (this.#exchange !== undefined || this.#state === 'closed') return this.destroy();
    this.#transport.end();
    return undefined;
  }

  #onClose(): void {
    this.#state = 'closed';
    this.#context.deadlines.delete(this);
    this.#context.pausedClients.delete(this.#transport);
    this.#onClosed(this);
    const exchange = this.#exchange;
    this.#exchange = undefined;
    exchange?.clientGone();
  }

  // ---- Ends

  /** Answers a request of which nothing more is read. */
  #reply(response: BalancerResponse, read: UnreadRequest = {}): void {
    const record = recordUnread(this.#context, this, response, read);
    this.#writer.text(writeBalancerResponse(response, read.head, record.requestId, false));
    this.#writer.flush();
    this.#closeAfterReply();
    this.#context.requestEnded(record);
  }

  #closeAfterReply(): void {
    this.#state = 'lingering';
    this.#pipelined = undefined;
    this.deadlineAt = this.#context.deadlines.in(this.#context.config.idleTimeoutMs);
    this.#transport.end(() => {
      this.deadlineAt = this.#context.deadlines.in(lingerMs);
    });
    this.#readOn();
  }

  #guarded(work: () => void): void {
    try {
      work();
    } catch (error) {
      this.#crash(error);
    }
  }

  /** An unexpected error in the work on one connection must not end the others. */
  #crash(error: unknown): void {
    this.#context.crashed(error);
    const exchange = this.#exchange;
    this.#exchange = undefined;
    this.#state = 'closed';
    this.#isConsuming = false;
    this.#transport.destroy();
    try {
      exchange?.clientGone();
    } catch (second) {
      this.#context.crashed(second);
    }
  }
}
