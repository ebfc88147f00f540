import { BodyDecoder } from './body-decoder.ts';
import { untilClose } from './body-length.ts';
import type { BodySink, Trailers } from './chunked-decoder.ts';
import type { Fault } from './faults.ts';
import { faulted, HeadScanner, needMore } from './head-scanner.ts';
import type { HeadLimits } from './limits.ts';
import { readRequestHead, type RequestHead } from './request-head.ts';

/** What was read of the first line of a refused head: empty from the part on that broke a rule. */
export interface RequestLine {
  /** A token. */
  readonly method: string;
  readonly target: string;
}

/** Gets the events of one request, in order: a head, any number of bodies, an end; a fault may replace any of them. */
export interface RequestSink extends BodySink {
  requestHead(head: RequestHead): void;
  requestEnd(trailers: Trailers): void;
  /** The last event: the start of a next request is unknown. `line`: if the head broke a rule. */
  requestFault(fault: Fault, line?: RequestLine): void;
}

/** Reads requests off one connection, one after the other. */
export class RequestParser {
  readonly #sink: RequestSink;
  readonly #scanner: HeadScanner;
  readonly #body: BodyDecoder;
  #state: 'head' | 'body' | 'failed' = 'head';

  constructor(sink: RequestSink, limits: HeadLimits) {
    this.#sink = sink;
    this.#scanner = new HeadScanner('request', limits);
    this.#body = new BodyDecoder(limits);
  }

  /** Whether part of a head was read and the rest is awaited. */
  get isInHead(): boolean {
    return this.#state === 'head' && this.#scanner.isMidway;
  }

  /** Parses to the end of the current request at most. Returns the offset up to which `chunk` was used. */
  feed(chunk: Buffer, from: number): number {
    let at = from;
    if (this.#state === 'head') {
      const next = this.#scanner.scan(chunk, at);
      if (next === needMore) return chunk.length;
      if (next === faulted) return this.#fail(this.#scanner.fault, chunk, this.#scanner.requestLine);
      const head = readRequestHead(this.#scanner);
      if (typeof head === 'string') return this.#fail(head, chunk, this.#scanner.requestLine);
      at = next;
      this.#body.begin(head.bodyLength);
      this.#state = 'body';
      this.#sink.requestHead(head);
      if (this.#body.isEmpty) return this.#end(at);
    }
    if (this.#state !== 'body') return chunk.length;
    const next = this.#body.decode(chunk, at, this.#sink);
    if (next === needMore) return chunk.length;
    if (next === faulted) return this.#fail(this.#body.fault, chunk);
    return this.#end(next);
  }

  /** The bytes that follow are no HTTP any more: the sink gets all of them as body, without an end event. */
  becomeRaw(): void {
    this.#body.begin(untilClose);
    this.#state = 'body';
  }

  #end(at: number): number {
    this.#state = 'head';
    this.#sink.requestEnd(this.#body.trailers);
    return at;
  }

  #fail(fault: Fault, chunk: Buffer, line?: RequestLine): number {
    this.#state = 'failed';
    this.#sink.requestFault(fault, line);
    return chunk.length;
  }
}
