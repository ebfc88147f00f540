import { type ClientHttp2Session, type ClientHttp2Stream, type Http2Stream, constants, sensitiveHeaders } from 'node:http2';
import { type Trailers, noTrailers } from '../http1/chunked-decoder.ts';
import type { Fault } from '../http1/faults.ts';
import { type ForwardedClient, forwardRequestHead } from '../http1/forward-request.ts';
import { defaultHeadLimits, maxInterimResponses } from '../http1/limits.ts';
import type { RequestHead } from '../http1/request-head.ts';
import type { ReplicaStream, ReplicaStreamUser } from '../replicas/replica-stream.ts';
import { type FieldList, fieldsAsObject, fieldsOfHead } from './field-lists.ts';
import { PieceList } from './piece-list.ts';
import { readResponseFields, readTrailerFields } from './read-heads.ts';

/** Never put into the connection's compression table: the requests of many clients share it. */
const secretFields = ['authorization', 'cookie'];

/** What a stream needs from its connection. */
export interface Http2StreamOwner {
  readonly session: ClientHttp2Session;
  /** The last stream that the replica has processed, according to its GOAWAY; undefined before. */
  readonly lastStreamId: number | undefined;
  /** The request was cancelled. `wasSilent`: no byte of an answer had come. */
  givenUp(wasSilent: boolean): void;
  served(): void;
  /** Makes room for another stream. */
  forget(stream: Http2ReplicaStream): void;
  /** The code threw an unexpected error while it worked on an event of the stream. */
  crashed(error: unknown): void;
}

/** One request at an HTTP/2 replica, over a shared connection. */
export class Http2ReplicaStream implements ReplicaStream {
  readonly isReused: boolean;
  readonly mayRefuse = true;
  readonly #owner: Http2StreamOwner;
  #user: ReplicaStreamUser | undefined;
  #request: RequestHead | undefined;
  /** Until the request's head was sent. */
  #fields: string[] | undefined;
  readonly #body = new PieceList();
  #trailers: Trailers | undefined;
  #stream: ClientHttp2Stream | undefined;
  #end: EndOfBody | undefined;
  #responseTrailers: Trailers = noTrailers;
  #interims = 0;
  #isAnswered = false;

  /** `isReused`: the connection has served requests before. */
  constructor(owner: Http2StreamOwner, isReused: boolean) {
    this.#owner = owner;
    this.isReused = isReused;
  }

  /** Whether the replica reports that it has not begun to process the request (RFC 9113, section 8.7). */
  get #isRefused(): boolean {
    const stream = this.#stream;
    if (stream === undefined) return true;
    const { lastStreamId } = this.#owner;
    return stream.rstCode === constants.NGHTTP2_REFUSED_STREAM || (lastStreamId !== undefined && (stream.id ?? 0) > lastStreamId);
  }

  begin(user: ReplicaStreamUser, head: RequestHead, client: ForwardedClient, requestId: string): void {
    this.#user = user;
    this.#request = head;
    const fields = fieldsOfHead(forwardRequestHead(head, client, requestId));
    const host = fields.indexOf('host');
    const [, authority = ''] = host < 0 ? [] : fields.splice(host, 2);
    this.#fields = [':method', head.method, ':scheme', 'http', ':authority', authority, ':path', head.path, ...fields];
  }

  body(bytes: Buffer, from: number, to: number): void {
    this.#body.add(bytes, from, to);
  }

  end(trailers: Trailers): void {
    this.#trailers = trailers;
  }

  flush(): boolean {
    if (this.#user === undefined) return true;
    if (this.#fields !== undefined) this.#sendHead(this.#fields);
    const stream = this.#stream;
    const bytes = this.#body.take();
    if (stream === undefined || stream.closed || stream.writableEnded) return true;
    if (bytes !== undefined) stream.write(bytes);
    if (this.#trailers !== undefined) stream.end();
    return !stream.writableNeedDrain;
  }

  pause(): void {
    this.#stream?.pause();
  }

  resume(): void {
    this.#stream?.resume();
  }

  release(_response: unknown, isRequestSent: boolean): void {
    this.#user = undefined;
    this.#owner.served();
    if (!isRequestSent) this.#stream?.close(constants.NGHTTP2_CANCEL);
  }

  destroy(): void {
    if (this.#user === undefined) return;
    this.#user = undefined;
    this.#body.clear();
    if (this.#stream === undefined) this.#owner.forget(this);
    else {
      this.#stream.close(constants.NGHTTP2_CANCEL);
      this.#owner.givenUp(!this.#isAnswered);
    }
  }

  #sendHead(fields: string[]): void {
    this.#fields = undefined;
    const isWhole = this.#trailers?.length === 0;
    const isEmpty = this.#request?.bodyLength === 0 || (isWhole && this.#body.isEmpty);
    // Without `waitForTrailers`, a cancelled request would first announce the proper end of its body.
    const options = isEmpty ? { endStream: true } : { endStream: false, waitForTrailers: !isWhole };
    const stream = this.#owner.session.request(Object.assign(fields, { [sensitiveHeaders]: secretFields }), options);
    this.#stream = stream;
    this.#end = new EndOfBody(stream);
    stream.on('wantTrailers', () => this.#guarded(() => stream.sendTrailers(fieldsAsObject(this.#trailers ?? noTrailers))));
    stream.on('headers', (_fields, _flags, raw: FieldList) => this.#guarded((user) => this.#onInterim(raw, user)));
    stream.on('response', (_fields, _flags, raw: FieldList) => this.#guarded((user) => this.#onResponse(raw, user)));
    stream.on('trailers', (_fields, _flags, raw: FieldList) => {
      this.#responseTrailers = readTrailerFields(raw);
    });
    stream.on('end', () => this.#guarded((user) => this.#onEnd(user)));
    stream.on('drain', () => this.#guarded((user) => user.replicaDrained()));
    // The cause does not matter: `close` follows.
    stream.on('error', () => undefined);
    stream.on('close', () => this.#onClose());
  }

  #onInterim(raw: FieldList, user: ReplicaStreamUser): void {
    this.#isAnswered = true;
    this.#interims += 1;
    if (this.#interims > maxInterimResponses) return this.#fault('too_many_interim', user);
    const head = readResponseFields(raw, false, defaultHeadLimits);
    if (typeof head === 'string') return this.#fault(head, user);
    user.responseInterim(head);
    return user.afterRead();
  }

  #onResponse(raw: FieldList, user: ReplicaStreamUser): void {
    this.#isAnswered = true;
    const head = readResponseFields(raw, this.#request?.method === 'HEAD', defaultHeadLimits);
    if (typeof head === 'string') return this.#fault(head, user);
    const stream = this.#stream;
    user.responseHead(head);
    stream?.on('data', (chunk: Buffer) => {
      this.#guarded((reader) => {
        reader.body(chunk, 0, chunk.length);
        reader.afterRead();
      });
    });
    // A head without a body is sent together with its end, which is already known.
    if (stream?.readableEnded === true || this.#end?.isProper === true) return undefined;
    return user.afterRead();
  }

  #fault(fault: Fault, user: ReplicaStreamUser): void {
    user.responseFault(fault);
    user.afterRead();
  }

  #onEnd(user: ReplicaStreamUser): void {
    if (this.#end?.isProper !== true || !this.#isAnswered) return this.#lose(user);
    user.responseEnd(this.#responseTrailers);
    return user.afterRead();
  }

  #onClose(): void {
    this.#owner.forget(this);
    this.#guarded((user) => this.#lose(user));
  }

  #lose(user: ReplicaStreamUser): void {
    this.#user = undefined;
    this.#stream?.close(constants.NGHTTP2_CANCEL);
    user.streamLost(this.#isRefused);
  }

  /** An unexpected error in the work on one stream must not end the others. */
  #guarded(work: (user: ReplicaStreamUser) => void): void {
    const user = this.#user;
    if (user === undefined) return;
    try {
      work(user);
    } catch (error) {
      this.destroy();
      this.#owner.crashed(error);
      user.streamLost();
    }
  }
}

/**
 * Distinguishes the proper end of a body from a reset with NO_ERROR: Node emits `end` for both. Only a proper end is
 * queued behind the data while the stream is still open.
 */
class EndOfBody {
  #isProper = false;

  /** Must watch the stream before its first byte. */
  constructor(stream: Http2Stream) {
    const push = stream.push.bind(stream);
    stream.push = (chunk: unknown, encoding?: BufferEncoding) => {
      if (chunk === null && !stream.closed) this.#isProper = true;
      return push(chunk, encoding);
    };
  }

  /** Valid after `end`. */
  get isProper(): boolean {
    return this.#isProper;
  }
}
