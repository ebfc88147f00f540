import { type ServerHttp2Stream, constants } from 'node:http2';
import type { Reply } from '../exchange/exchange-client.ts';
import { type Trailers, noTrailers } from '../http1/chunked-decoder.ts';
import * as forward from '../http1/forward-response.ts';
import { EventBoundary } from '../http1/event-boundary.ts';
import { type BalancerResponse, writeBalancerResponse } from '../http1/balancer-response.ts';
import type { RequestHead } from '../http1/request-head.ts';
import type { ResponseHead } from '../http1/response-head.ts';
import { brokenEventStream } from '../exchange/balancer-responses.ts';
import { type FieldList, fieldsAsObject, fieldsOfHead } from './field-lists.ts';
import { isGrpc } from '../http1/grpc-request.ts';
import { PieceList } from './piece-list.ts';
import type { UsefulWork } from './useful-work.ts';

/** The highest status that Node's HTTP/2 can send; a replica of HTTP/1.1 may send others. */
const maxStatus = 599;
/** Has no body. A replica of HTTP/1.1 may send one all the same; Node's HTTP/2 does not. */
const resetContent = 205;

/** Writes the response of one HTTP/2 stream. */
export class Http2Reply implements Reply {
  readonly #stream: ServerHttp2Stream;
  readonly #request: RequestHead | undefined;
  readonly #work: UsefulWork;
  readonly #interims: FieldList[] = [];
  /** Until it was sent. */
  #head: FieldList | undefined;
  readonly #body = new PieceList();
  #trailers: Trailers | undefined;
  #isHeadSent = false;
  #hasBody = true;
  #isEventStream = false;
  #onSent: (() => void) | undefined;
  /** Of an event stream. */
  readonly #boundary = new EventBoundary();

  /** `request`: undefined when its head could not be read. */
  constructor(stream: ServerHttp2Stream, request: RequestHead | undefined, work: UsefulWork) {
    this.#stream = stream;
    this.#request = request;
    this.#work = work;
  }

  interim(head: ResponseHead): void {
    this.#interims.push([':status', String(head.status), ...fieldsOfHead(forward.forwardInterimHead(head))]);
  }

  head(head: ResponseHead, requestId: string, ownLines: string): void {
    if (this.#request === undefined) return;
    const status = Math.min(head.status, maxStatus);
    const framing = status === resetContent ? 'none' : forward.responseFraming(head, this.#request);
    const additions = { requestId, isPersistent: true, ownLines };
    const fields = fieldsOfHead(forward.forwardResponseHead(head, this.#request, framing, additions));
    this.#head = [':status', String(status), ...(status === resetContent ? withoutContent(fields) : fields)];
    this.#hasBody = framing !== 'none';
    this.#isEventStream = framing === 'chunked' && forward.isEventStream(head);
  }

  body(bytes: Buffer, from: number, to: number): void {
    if (!this.#hasBody) return;
    this.#body.add(bytes, from, to);
    if (this.#isEventStream) this.#boundary.track(bytes, from, to);
  }

  end(trailers: Trailers): void {
    this.#trailers = trailers;
  }

  own(response: BalancerResponse, requestId: string): void {
    this.#interims.length = 0;
    this.#body.clear();
    this.#trailers = noTrailers;
    const text = writeBalancerResponse(response, this.#request, requestId, true);
    const bodyStart = text.indexOf('\r\n\r\n') + 4;
    const fields = fieldsOfHead(text.slice(0, bodyStart));
    const isForGrpc = this.#request !== undefined && isGrpc(this.#request);
    this.#hasBody = bodyStart < text.length && !isForGrpc && !this.#stream.writableEnded;
    if (this.#hasBody) this.#body.addWhole(Buffer.from(text.slice(bodyStart)));
    this.#head = isForGrpc ? [...grpcFields(response), ...withoutContent(fields)] : [':status', String(response.status), ...fields];
  }

  /** Reports the break as far as the protocol allows, before the stream is reset. */
  breakOff(): void {
    if (this.#isEventStream && this.#boundary.isBetweenEvents) this.#body.addWhole(brokenEventStream);
    this.flush();
  }

  /** Calls `then` when the whole flushed response has left for the network. */
  onSent(then: () => void): void {
    if (this.#stream.writableFinished) then();
    else this.#onSent = then;
  }

  flush(): boolean {
    if (this.#stream.destroyed || this.#stream.closed) {
      this.#body.clear();
      return true;
    }
    for (const fields of this.#interims.splice(0)) this.#stream.additionalHeaders(fieldsAsObject(fields));
    if (this.#head !== undefined) this.#sendHead(this.#head);
    if (!this.#isHeadSent) return true;
    const bytes = this.#body.take();
    if (bytes !== undefined) {
      this.#work.answer(bytes.length);
      this.#stream.write(bytes);
    }
    if (this.#trailers !== undefined && !this.#stream.writableEnded) this.#stream.end();
    return !this.#stream.writableNeedDrain;
  }

  #sendHead(head: FieldList): void {
    this.#head = undefined;
    this.#isHeadSent = true;
    const isWhole = this.#trailers?.length === 0;
    this.#work.answer(0);
    if (isWhole) {
      this.#stream.respond(head, { endStream: this.#body.isEmpty });
      this.#stream.once('finish', () => this.#sent());
      return;
    }
    // Without `waitForTrailers`, closing the stream for an error would first announce the proper end of the response.
    this.#stream.respond(head, { waitForTrailers: true });
    this.#stream.once('wantTrailers', () => {
      sendTrailers(this.#stream, this.#trailers ?? noTrailers);
      // Node sends them in the next turn.
      setImmediate(() => setImmediate(() => this.#sent()));
    });
  }

  #sent(): void {
    this.#onSent?.();
    this.#onSent = undefined;
  }
}

/** Fields that describe a body mean nothing without a body. */
function withoutContent(fields: FieldList): string[] {
  const rest: string[] = [];
  for (let index = 0; index < fields.length; index += 2) {
    const name = fields[index] ?? '';
    if (!name.startsWith('content-')) rest.push(name, fields[index + 1] ?? '');
  }
  return rest;
}

/** Invalid field names of a replica must end only its own response. */
function sendTrailers(stream: ServerHttp2Stream, trailers: Trailers): void {
  try {
    stream.sendTrailers(fieldsAsObject(trailers));
  } catch {
    stream.close(constants.NGHTTP2_INTERNAL_ERROR);
  }
}

/** The gRPC status for an HTTP status: gRPC's own mapping for clients, refined where the balancer knows more. */
const grpcStatuses: Readonly<Record<number, number>> = {
  // DEADLINE_EXCEEDED
  408: 4,
  504: 4,
  // RESOURCE_EXHAUSTED
  413: 8,
  414: 8,
  431: 8,
  // UNIMPLEMENTED
  405: 12,
  501: 12,
  // UNAVAILABLE
  502: 14,
  503: 14,
};
const grpcInternal = 13;

/** The fields of a balancer's own answer to a gRPC client: it has a gRPC status, and its HTTP status is 200. */
export function grpcFields(response: BalancerResponse): readonly string[] {
  const status = grpcStatuses[response.status] ?? grpcInternal;
  return [
    ':status',
    '200',
    'content-type',
    'application/grpc',
    'grpc-status',
    String(status),
    'grpc-message',
    percentEncoded(response.message),
  ];
}

/** Visible ASCII but `%` stands for itself. */
function percentEncoded(message: string): string {
  let out = '';
  for (const octet of Buffer.from(message)) {
    const isPlain = octet >= 0x20 && octet <= 0x7e && octet !== 0x25;
    out += isPlain ? String.fromCharCode(octet) : `%${octet.toString(16).toUpperCase().padStart(2, '0')}`;
  }
  return out;
}
