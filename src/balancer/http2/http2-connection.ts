import { constants, performServerHandshake, type ServerHttp2Session, type ServerHttp2Stream } from 'node:http2';
import type { Socket } from 'node:net';
import { recordUnread } from '../exchange/request-record.ts';
import type { BalancerContext } from '../exchange/balancer-context.ts';
import type { Timed } from '../transport/deadlines.ts';
import type { ClientOptions } from '../client/client-connection.ts';
import { forwardedClient } from '../client/forwarded-client.ts';
import { noTrailers } from '../http1/chunked-decoder.ts';
import type { ForwardedClient } from '../http1/forward-request.ts';
import type { BalancerResponse } from '../http1/balancer-response.ts';
import type { ServedConnection } from '../threads/listener.ts';
import type { RequestLine } from '../http1/request-parser.ts';
import * as own from '../exchange/balancer-responses.ts';
import { isEncrypted } from '../transport/stream-transport.ts';
import type { FieldList } from './field-lists.ts';
import { Http2Client, type Http2ClientOwner, type Http2Request } from './http2-client.ts';
import { Http2Reply } from './http2-reply.ts';
import { malformed, readRequestFields, readTrailerFields, requestLineOf } from './read-heads.ts';
import { connectionWindowBytes, serverOptions } from './session-options.ts';
import { UsefulWork } from './useful-work.ts';

const checkIntervalMs = 500;
/** From the connection to its first request. */
const firstRequestMs = 10_000;

/** One connection of an HTTP/2 client: gives each of its streams to an exchange. */
export class Http2Connection implements ServedConnection, Http2ClientOwner, Timed {
  readonly context: BalancerContext;
  readonly forwarded: ForwardedClient;
  readonly protocol = 'h2';
  readonly work: UsefulWork;
  deadlineAt: number;
  readonly #socket: Socket;
  readonly #session: ServerHttp2Session;
  readonly #onClosed: (connection: Http2Connection) => void;
  readonly #clients = new Set<Http2Client>();
  /** From the current round of reads, in order of arrival: see `#beginArrived`. */
  #arrived: Http2Request[] = [];
  /**
   * Requests that have not begun, because the connection has its share of the open files. In order of arrival; with the
   * monotonic ms at which each is refused.
   */
  readonly #waiting = new Map<Http2Request, number>();
  /** Monotonic ms: the connection is closed then, unless a stream is open. */
  #idleUntil: number;
  #isClosed = false;

  /** `socket`: the next bytes on it are the client's preface. `address`: from the PROXY header, if there was one. */
  constructor(
    socket: Socket,
    context: BalancerContext,
    onClosed: (connection: Http2Connection) => void,
    { address, subject }: Pick<ClientOptions, 'address' | 'subject'>,
  ) {
    this.context = context;
    this.#socket = socket;
    this.#onClosed = onClosed;
    const { deadlines, trustedProxies, config } = context;
    const isSecure = isEncrypted(socket);
    this.forwarded = forwardedClient(address ?? socket.remoteAddress, isSecure, trustedProxies, subject);
    this.work = new UsefulWork(deadlines.now);
    this.#idleUntil = deadlines.in(firstRequestMs);
    this.deadlineAt = deadlines.in(checkIntervalMs);
    this.#session = performServerHandshake(socket, serverOptions(config));
    // `performServerHandshake` takes no window for the whole connection.
    this.#session.once('connect', () => this.#guarded(() => this.#session.setLocalWindowSize(connectionWindowBytes)));
    this.#session.on('stream', (stream: ServerHttp2Stream, _fields, flags: number, raw: FieldList) => {
      this.#guarded(() => this.#onStream(stream, flags, raw));
    });
    // The cause does not matter: `close` follows.
    this.#session.on('error', () => undefined);
    this.#session.on('close', () => this.#onClose());
    // A client that closed looks like one that only sends no more. It is far likelier, and would stay for long.
    socket.on('end', () => this.destroy());
    deadlines.add(this);
  }

  /** Announces that no further request is accepted (GOAWAY); closes after the last response. */
  drain(): void {
    this.#guarded(() => this.#session.close());
  }

  handOver(): void {
    this.drain();
  }

  destroy(): void {
    this.#guarded(() => this.#session.destroy());
    this.#onClose();
  }

  reject(): void {
    this.#guarded(() => this.#session.destroy(new Error('Too much for nothing'), constants.NGHTTP2_ENHANCE_YOUR_CALM));
  }

  // ---- Http2ClientOwner

  forget(client: Http2Client): void {
    if (this.#clients.delete(client) && this.#isCounted) this.context.files.closeRequest(this.#clients.size);
    this.#guarded(() => this.#beginWaiting());
    if (this.#clients.size === 0) this.#idleUntil = this.context.deadlines.in(this.context.config.keepAliveTimeoutMs);
  }

  // ---- Timed

  onDeadline(): void {
    const { deadlines } = this.context;
    this.deadlineAt = deadlines.in(checkIntervalMs);
    if (this.work.isWasted(this.#socket.bytesRead, this.#heldBytes, deadlines.now)) this.reject();
    else if (this.#clients.size === 0 && this.#idleUntil <= deadlines.now) this.#closeIdle();
    else this.#guarded(() => this.#beginWaiting());
  }

  get #heldBytes(): number {
    let bytes = 0;
    for (const client of this.#clients) bytes += client.heldBytes;
    for (const { stream } of this.#waiting.keys()) bytes += stream.readableLength;
    return bytes;
  }

  /** An idle client gets a GOAWAY first; a client that does not even take that is disconnected. */
  #closeIdle(): void {
    if (this.#session.closed) this.destroy();
    else this.drain();
  }

  // ---- Events of the session

  #onStream(stream: ServerHttp2Stream, flags: number, raw: FieldList): void {
    // The cause does not matter: `close` follows.
    stream.on('error', () => undefined);
    const isEnded = (flags & constants.NGHTTP2_FLAG_END_STREAM) !== 0;
    const head = readRequestFields(raw, isEnded, this.context.headLimits);
    this.work.request(raw.reduce((bytes, text) => bytes + text.length, 0));
    if (head === malformed) stream.close(constants.NGHTTP2_PROTOCOL_ERROR);
    else if (typeof head === 'string') this.#refuse(stream, own.refusal(head), requestLineOf(raw));
    else {
      const request: Http2Request = { stream, head, isEnded, trailers: noTrailers };
      // They may arrive before the request begins.
      stream.once('trailers', (_trailers, _flags, fields: FieldList) => {
        request.trailers = readTrailerFields(fields);
      });
      if (this.#arrived.length === 0) setImmediate(() => this.#guarded(() => this.#beginArrived()));
      this.#arrived.push(request);
    }
  }

  /** Begins requests after the reads: a stream that is reset in the same read must cost the replicas no connection. */
  #beginArrived(): void {
    const requests = this.#arrived;
    this.#arrived = [];
    for (const request of requests) if (this.#waiting.size > 0 || !this.#begin(request)) this.#wait(request);
  }

  /** False when the connection has its share of the open files. */
  #begin(request: Http2Request): boolean {
    const { stream } = request;
    if (isReset(stream)) {
      stream.destroy();
      return true;
    }
    if (this.#isCounted && !this.context.files.openRequest(this.#clients.size)) return false;
    this.#clients.add(new Http2Client(request, this));
    return true;
  }

  /** Until it begins, flow control holds back the request's body. */
  #wait(request: Http2Request): void {
    const { deadlines, config, files } = this.context;
    const { stream } = request;
    if (!files.beginWait(this.#waiting.size)) return this.#refuseShare(stream);
    this.#waiting.set(request, deadlines.in(config.queue.timeoutMs));
    const leave = (): void => this.#endWait(request);
    stream.once('aborted', leave).once('close', leave);
    return undefined;
  }

  #endWait(request: Http2Request): void {
    if (this.#waiting.delete(request)) this.context.files.endWait();
  }

  #beginWaiting(): void {
    for (const [request, until] of this.#waiting) {
      if (until <= this.context.deadlines.now && !isReset(request.stream)) this.#refuseShare(request.stream);
      else if (!this.#begin(request)) return;
      this.#endWait(request);
    }
  }

  #refuseShare(stream: ServerHttp2Stream): void {
    this.context.metrics.refusedForFiles('stream');
    this.#refuse(stream, own.shareUsed(this.context.config));
  }

  /** Each stream needs its own connection to a replica of HTTP/1.1; replicas of HTTP/2 share a few connections. */
  get #isCounted(): boolean {
    return this.context.config.protocol !== 'h2c';
  }

  #refuse(stream: ServerHttp2Stream, response: BalancerResponse, line?: RequestLine): void {
    const record = recordUnread(this.context, this, response, { line });
    const reply = new Http2Reply(stream, undefined, this.work);
    reply.own(response, record.requestId);
    reply.flush();
    reply.onSent(() => stream.close(constants.NGHTTP2_NO_ERROR));
    this.context.requestEnded(record);
  }

  #onClose(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    for (const request of this.#waiting.keys()) this.#endWait(request);
    this.context.deadlines.delete(this);
    for (const client of this.#clients) client.destroy();
    this.#onClosed(this);
  }

  /** An unexpected error in the work on one connection must not end the others. */
  #guarded(work: () => void): void {
    try {
      work();
    } catch (error) {
      this.context.crashed(error);
      this.#session.destroy();
    }
  }
}

/** Of a stream whose response has not begun. A reset without an error code does not destroy it. */
const isReset = (stream: ServerHttp2Stream): boolean => stream.closed || stream.destroyed;
