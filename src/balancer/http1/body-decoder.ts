import { chunkedLength, untilClose, type BodyLength } from './body-length.ts';
import { ChunkedDecoder, noTrailers, type BodySink, type Trailers } from './chunked-decoder.ts';
import type { Fault } from './faults.ts';
import { needMore } from './head-scanner.ts';
import type { HeadLimits } from './limits.ts';

/** Decodes the bodies of one connection, one after the other, with any framing. */
export class BodyDecoder {
  readonly #limits: HeadLimits;
  /** Made for the first chunked body: many connections never have one. */
  #chunked: ChunkedDecoder | undefined;
  #length: BodyLength = 0;
  #left = 0;

  constructor(limits: HeadLimits) {
    this.#limits = limits;
  }

  begin(length: BodyLength): void {
    this.#length = length;
    this.#left = Math.max(0, length);
    if (length !== chunkedLength) return;
    this.#chunked ??= new ChunkedDecoder(this.#limits);
    this.#chunked.reset();
  }

  get isEmpty(): boolean {
    return this.#length === 0;
  }

  /** Whether the end of the connection is the proper end of the body. */
  get endsWithConnection(): boolean {
    return this.#length === untilClose;
  }

  get trailers(): Trailers {
    return this.#length === chunkedLength && this.#chunked !== undefined ? this.#chunked.trailers : noTrailers;
  }

  get fault(): Fault {
    return this.#chunked?.fault ?? 'bad_chunk';
  }

  /** Passes the body's bytes to `sink`. Returns the offset after its last byte, or `needMore`, or `faulted`. */
  decode(chunk: Buffer, from: number, sink: BodySink): number {
    if (this.#length === chunkedLength && this.#chunked !== undefined) return this.#chunked.decode(chunk, from, sink);
    if (this.#length === untilClose) {
      if (from < chunk.length) sink.body(chunk, from, chunk.length);
      return needMore;
    }
    const to = Math.min(chunk.length, from + this.#left);
    this.#left -= to - from;
    if (to > from) sink.body(chunk, from, to);
    return this.#left === 0 ? to : needMore;
  }
}
