import type { Fault } from './faults.ts';
import { mayTrail } from './field-kinds.ts';
import { faulted, HeadScanner, needMore } from './head-scanner.ts';
import { maxChunkExtensionBytes, maxChunkSizeDigits, type HeadLimits } from './limits.ts';
import { CR, hexValues, LF, SEMICOLON, valueOctets } from './octets.ts';

/** Gets the data of a body, without its framing. */
export interface BodySink {
  /** `bytes[from, to)` is body; valid during the call and as long as the buffer is kept. Never empty. */
  body(bytes: Buffer, from: number, to: number): void;
}

/** Trailer fields that may be passed on: name, value, name, value. */
export type Trailers = readonly string[];
export const noTrailers: Trailers = [];

const State = { size: 0, extension: 1, sizeLf: 2, data: 3, dataCr: 4, dataLf: 5, trailers: 6, endLf: 7, trailerFields: 8 } as const;
type State = (typeof State)[keyof typeof State];

/** Removes the chunked framing from a body that may arrive in any pieces (RFC 9112, section 7.1). Drops extensions. */
export class ChunkedDecoder {
  fault: Fault = 'bad_chunk';
  trailers: Trailers = noTrailers;
  readonly #limits: HeadLimits;
  #state: State = State.size;
  #size = 0;
  #digits = 0;
  #extensionBytes = 0;
  #scanner: HeadScanner | undefined;

  constructor(limits: HeadLimits) {
    this.#limits = limits;
  }

  reset(): void {
    this.trailers = noTrailers;
    this.#state = State.size;
    this.#size = 0;
    this.#digits = 0;
    this.#extensionBytes = 0;
    this.#scanner = undefined;
  }

  /** The offset after the body's last byte, or `needMore`, or `faulted`. */
  decode(chunk: Buffer, from: number, sink: BodySink): number {
    let at = from;
    const end = chunk.length;
    while (at < end) {
      const octet = chunk[at] ?? 0;
      switch (this.#state) {
        case State.size: {
          const digit = hexValues[octet] ?? 255;
          if (digit < 16) {
            this.#digits += 1;
            this.#size = this.#size * 16 + digit;
            if (this.#digits > maxChunkSizeDigits || this.#size > Number.MAX_SAFE_INTEGER) return faulted;
          } else if (this.#digits === 0) return faulted;
          else if (octet === CR) this.#state = State.sizeLf;
          else if (octet === SEMICOLON) this.#state = State.extension;
          else return faulted;
          at += 1;
          break;
        }
        case State.extension:
          if (octet === CR) this.#state = State.sizeLf;
          else {
            this.#extensionBytes += 1;
            if (valueOctets[octet] !== 1 || this.#extensionBytes > maxChunkExtensionBytes) return faulted;
          }
          at += 1;
          break;
        case State.sizeLf:
          if (octet !== LF) return faulted;
          this.#state = this.#size === 0 ? State.trailers : State.data;
          this.#digits = 0;
          at += 1;
          break;
        case State.data: {
          const to = Math.min(end, at + this.#size);
          this.#size -= to - at;
          if (this.#size === 0) this.#state = State.dataCr;
          sink.body(chunk, at, to);
          at = to;
          break;
        }
        case State.dataCr:
          if (octet !== CR) return faulted;
          this.#state = State.dataLf;
          at += 1;
          break;
        case State.dataLf:
          if (octet !== LF) return faulted;
          this.#state = State.size;
          at += 1;
          break;
        case State.trailers:
          if (octet === CR) {
            this.#state = State.endLf;
            at += 1;
          } else {
            this.#scanner = new HeadScanner('none', this.#limits);
            this.#state = State.trailerFields;
          }
          break;
        case State.endLf:
          return octet === LF ? at + 1 : faulted;
        case State.trailerFields:
          return this.#scanTrailers(chunk, at);
      }
    }
    return needMore;
  }

  #scanTrailers(chunk: Buffer, from: number): number {
    const scanner = this.#scanner;
    if (scanner === undefined) return faulted;
    const to = scanner.scan(chunk, from);
    if (to === faulted) this.fault = scanner.fault;
    else if (to !== needMore) this.trailers = readTrailers(scanner);
    return to;
  }
}

function readTrailers(scanner: HeadScanner): Trailers {
  const { text, marks, fieldCount } = scanner;
  const trailers: string[] = [];
  for (let mark = 0; mark < fieldCount * 4; mark += 4) {
    const name = text.slice(marks[mark], marks[mark + 1]);
    if (mayTrail(name)) trailers.push(name, text.slice(marks[mark + 2], marks[mark + 3]));
  }
  return trailers;
}
