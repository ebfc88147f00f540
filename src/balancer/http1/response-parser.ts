import { BodyDecoder } from './body-decoder.ts';
import { noTrailers, type BodySink, type Trailers } from './chunked-decoder.ts';
import type { Fault } from './faults.ts';
import { faulted, HeadScanner, needMore } from './head-scanner.ts';
import { maxInterimResponses, type HeadLimits } from './limits.ts';
import { readResponseHead, type ResponseHead } from './response-head.ts';

/** Gets the events of one response: interim heads, a head, bodies, an end. A fault may replace any of them. */
export interface ResponseSink extends BodySink {
  responseInterim(head: ResponseHead): void;
  responseHead(head: ResponseHead): void;
  responseEnd(trailers: Trailers): void;
  responseFault(fault: Fault): void;
}

/** Reads responses off one connection to a replica, each announced by `begin`. */
export class ResponseParser {
  #sink: ResponseSink | undefined;
  readonly #scanner: HeadScanner;
  readonly #body: BodyDecoder;
  #state: 'idle' | 'head' | 'body' | 'failed' = 'idle';
  #isHead = false;
  #isUpgrade = false;
  #isTunnel = false;
  #interimCount = 0;
  #isReusable = true;

  constructor(limits: HeadLimits) {
    this.#scanner = new HeadScanner('status', limits);
    this.#body = new BodyDecoder(limits);
  }

  /** Whether the response was a 101: all later bytes are body until the connection ends. */
  get isTunnel(): boolean {
    return this.#isTunnel;
  }

  /** False after an interim response that announced a body or the end of the connection. */
  get isReusable(): boolean {
    return this.#isReusable;
  }

  /** Sends the events of the next response to `sink`. `isUpgrade`: the request asks for another protocol. */
  begin(method: string, isUpgrade: boolean, sink: ResponseSink): void {
    this.#sink = sink;
    this.#isUpgrade = isUpgrade;
    this.#isTunnel = false;
    this.#state = 'head';
    this.#isHead = method === 'HEAD';
    this.#interimCount = 0;
    this.#isReusable = true;
  }

  /** Parses to the end of the response at most. Returns where it stopped in `chunk`; no request asked for the rest. */
  feed(chunk: Buffer, from: number): number {
    let at = from;
    const sink = this.#sink;
    if (sink === undefined || this.#state === 'idle') return at;
    while (this.#state === 'head' && at < chunk.length) {
      const next = this.#scanner.scan(chunk, at);
      if (next === needMore) return chunk.length;
      if (next === faulted) return this.#fail(this.#scanner.fault, chunk);
      at = next;
      const head = readResponseHead(this.#scanner, this.#isHead, this.#isUpgrade);
      if (typeof head === 'string') return this.#fail(head, chunk);
      this.#isTunnel = head.isTunnel;
      if (head.status < 200 && !head.isTunnel) {
        this.#interimCount += 1;
        if (!head.isPersistent) this.#isReusable = false;
        if (this.#interimCount > maxInterimResponses) return this.#fail('too_many_interim', chunk);
        sink.responseInterim(head);
        continue;
      }
      this.#body.begin(head.bodyLength);
      this.#state = 'body';
      sink.responseHead(head);
      if (this.#body.isEmpty) return this.#end(at, sink);
    }
    if (this.#state !== 'body') return chunk.length;
    const next = this.#body.decode(chunk, at, sink);
    if (next === needMore) return chunk.length;
    if (next === faulted) return this.#fail(this.#body.fault, chunk);
    return this.#end(next, sink);
  }

  /** The replica ended the connection: true when that is the proper end of the response. */
  finish(): boolean {
    if (this.#state !== 'body' || !this.#body.endsWithConnection) return false;
    this.#state = 'idle';
    this.#sink?.responseEnd(noTrailers);
    return true;
  }

  #end(at: number, sink: ResponseSink): number {
    this.#state = 'idle';
    sink.responseEnd(this.#body.trailers);
    return at;
  }

  #fail(fault: Fault, chunk: Buffer): number {
    this.#state = 'failed';
    this.#sink?.responseFault(fault);
    return chunk.length;
  }
}
