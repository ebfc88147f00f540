import type { Fault } from './faults.ts';
import type { HeadLimits } from './limits.ts';
import { COLON, CR, HT, LF, SP, targetOctets, tokenOctets, valueOctets } from './octets.ts';

/** `METHOD target HTTP/1.x`, `HTTP/1.x code reason`, or none, as in trailers. */
type FirstLine = 'request' | 'status' | 'none';

/** Results of `HeadScanner.scan` that are not an offset. */
export const needMore = -1;
export const faulted = -2;

const State = {
  blank: 0,
  blankLf: 1,
  method: 2,
  target: 3,
  version: 4,
  lineCr: 5,
  lineLf: 6,
  status: 7,
  reason: 8,
  fieldStart: 9,
  name: 10,
  beforeValue: 11,
  value: 12,
  valueLf: 13,
  endLf: 14,
} as const;
type State = (typeof State)[keyof typeof State];

const initialStates: Readonly<Record<FirstLine, State>> = { request: State.blank, status: State.version, none: State.fieldStart };
const versionPrefix = Uint8Array.from('HTTP/1.', (character) => character.charCodeAt(0));
/** Length of ` HTTP/1.1`, which must still follow a target. */
const versionBytes = versionPrefix.length + 2;
const zero = 0x30;

/**
 * Finds the lines of a head that may arrive in any pieces. Refuses violations of RFC 9112 at the first invalid byte.
 * Reads each byte once, and copies only heads that arrive in pieces. One per connection.
 */
export class HeadScanner {
  /** The whole scanned head, each octet one character. Offsets below are into it. */
  text = '';
  methodStart = 0;
  methodEnd = 0;
  targetEnd = 0;
  minorVersion: 0 | 1 = 1;
  statusCode = 0;
  reasonStart = 0;
  reasonEnd = 0;
  fieldCount = 0;
  /** Four offsets for each field: name from, name to, value from, value to (without the white space around it). */
  readonly marks: number[] = [];
  fault: Fault = 'bad_method';

  readonly #firstLine: FirstLine;
  readonly #limits: HeadLimits;
  #state: State;
  #scanned = 0;
  #token = 0;
  #valueEnd = 0;
  #held: Buffer | undefined;
  #heldLength = 0;

  constructor(firstLine: FirstLine, limits: HeadLimits) {
    this.#firstLine = firstLine;
    this.#limits = limits;
    this.#state = initialStates[firstLine];
  }

  get isMidway(): boolean {
    return this.#scanned > 0;
  }

  /** Continues with `chunk` from `from`. Returns the offset after the head's last byte, `needMore`, or `faulted`. */
  scan(chunk: Buffer, from: number): number {
    const heldBefore = this.#heldLength;
    const isResumed = heldBefore > 0;
    if (isResumed) this.#hold(chunk, from);
    const bytes = isResumed && this.#held !== undefined ? this.#held : chunk;
    const start = isResumed ? 0 : from;
    const end = isResumed ? this.#heldLength : chunk.length;
    const scanned = this.#run(bytes, start, Math.min(end - start, this.#limits.headBytes));
    const isTooLarge = scanned === needMore && this.#scanned >= this.#limits.headBytes;
    if (isTooLarge) this.#refuse('head_too_large');
    if (scanned === faulted || isTooLarge) {
      this.text = bytes.toString('latin1', start, start + Math.max(this.methodEnd, this.targetEnd));
      return faulted;
    }
    if (scanned !== needMore) {
      this.text = bytes.toString('latin1', start, start + scanned);
      this.#rewind();
      return from + scanned - heldBefore;
    }
    if (!isResumed) this.#hold(chunk, from);
    return needMore;
  }

  /** Of the last head, also of a refused one: empty from the part on that was not read. */
  get requestLine(): { readonly method: string; readonly target: string } {
    const { text, methodStart, methodEnd, targetEnd } = this;
    return { method: text.slice(methodStart, methodEnd), target: text.slice(methodEnd + 1, targetEnd) };
  }

  /** The offsets of the last head stay until the next one is scanned. */
  #rewind(): void {
    this.#state = initialStates[this.#firstLine];
    this.#scanned = 0;
    this.#token = 0;
    this.#held = undefined;
    this.#heldLength = 0;
  }

  /** The buffer doubles, so a head sent byte by byte costs at most twice its size. */
  #hold(chunk: Buffer, from: number): void {
    const to = Math.min(chunk.length, from + this.#limits.headBytes - this.#heldLength);
    const length = this.#heldLength + to - from;
    if (this.#held === undefined || this.#held.length < length) {
      const roomier = Buffer.allocUnsafe(Math.max(512, length * 2));
      this.#held?.copy(roomier, 0, 0, this.#heldLength);
      this.#held = roomier;
    }
    chunk.copy(this.#held, this.#heldLength, from, to);
    this.#heldLength = length;
  }

  #beginHead(): void {
    this.methodStart = 0;
    this.methodEnd = 0;
    this.targetEnd = 0;
    this.fieldCount = 0;
  }

  #refuse(fault: Fault): typeof faulted {
    this.fault = fault;
    return faulted;
  }

  /** The state machine over `bytes[start, start + length)`; the offsets that it stores count from `start`. */
  #run(bytes: Buffer, start: number, length: number): number {
    let state = this.#state;
    let at = this.#scanned;
    if (at === 0) this.#beginHead();
    const { lineBytes } = this.#limits;
    while (at < length) {
      const octet = bytes[start + at] ?? 0;
      switch (state) {
        case State.blank:
          // One empty line before a request is accepted (RFC 9112, section 2.2).
          if (octet === CR && at === 0) {
            state = State.blankLf;
            at += 1;
            break;
          }
          this.#token = at;
          state = State.method;
          break;
        case State.blankLf:
          if (octet !== LF) return this.#refuse('bad_line_end');
          state = State.blank;
          at += 1;
          break;
        case State.method:
          while (at < length && tokenOctets[bytes[start + at] ?? 0] === 1) at += 1;
          if (at - this.#token > lineBytes) return this.#refuse('line_too_long');
          if (at === length) break;
          if (bytes[start + at] !== SP || at === this.#token) return this.#refuse('bad_method');
          this.methodStart = this.#token;
          this.methodEnd = at;
          at += 1;
          state = State.target;
          break;
        case State.target:
          while (at < length && targetOctets[bytes[start + at] ?? 0] === 1) at += 1;
          if (at - this.methodStart > lineBytes - versionBytes) return this.#refuse('line_too_long');
          if (at === length) break;
          if (bytes[start + at] !== SP) {
            const isLineEnd = bytes[start + at] === CR || bytes[start + at] === LF;
            return this.#refuse(isLineEnd ? 'bad_version' : 'bad_target');
          }
          if (at === this.methodEnd + 1) return this.#refuse('bad_target');
          this.targetEnd = at;
          at += 1;
          this.#token = at;
          state = State.version;
          break;
        case State.version: {
          const index = at - this.#token;
          if (index < versionPrefix.length) {
            if (octet !== versionPrefix[index]) return this.#refuse('bad_version');
          } else {
            if (octet !== zero && octet !== zero + 1) return this.#refuse('bad_version');
            this.minorVersion = octet === zero ? 0 : 1;
            this.statusCode = 0;
            state = this.#firstLine === 'status' ? State.status : State.lineCr;
            this.#token = at + 1;
          }
          at += 1;
          break;
        }
        case State.status: {
          // SP, three digits, then SP or the line's end, as many servers send an empty reason.
          const index = at - this.#token;
          if (index === 0) {
            if (octet !== SP) return this.#refuse('bad_status_line');
          } else if (index <= 3) {
            if (octet < zero + (index === 1 ? 1 : 0) || octet > zero + 9) return this.#refuse('bad_status_line');
            this.statusCode = this.statusCode * 10 + octet - zero;
          } else {
            if (octet !== SP && octet !== CR) return this.#refuse('bad_status_line');
            this.reasonStart = octet === SP ? at + 1 : at;
            this.reasonEnd = at;
            state = octet === SP ? State.reason : State.lineLf;
          }
          at += 1;
          break;
        }
        case State.reason:
          while (at < length && valueOctets[bytes[start + at] ?? 0] === 1) at += 1;
          if (at > lineBytes) return this.#refuse('line_too_long');
          if (at === length) break;
          this.reasonEnd = at;
          state = State.lineCr;
          break;
        case State.lineCr:
          if (octet !== CR) return this.#refuse(octet === LF ? 'bad_line_end' : this.#badFirstLine());
          state = State.lineLf;
          at += 1;
          break;
        case State.lineLf:
          if (octet !== LF) return this.#refuse('bad_line_end');
          state = State.fieldStart;
          at += 1;
          break;
        case State.fieldStart:
          if (octet === CR) {
            state = State.endLf;
            at += 1;
            break;
          }
          if (octet === SP || octet === HT) return this.#refuse('folded_field');
          if (this.fieldCount === this.#limits.fields) return this.#refuse('too_many_fields');
          this.#token = at;
          state = State.name;
          break;
        case State.name:
          while (at < length && tokenOctets[bytes[start + at] ?? 0] === 1) at += 1;
          if (at === length) break;
          if (bytes[start + at] !== COLON || at === this.#token) {
            return this.#refuse(bytes[start + at] === LF ? 'bad_line_end' : 'bad_field_name');
          }
          this.marks[this.fieldCount * 4] = this.#token;
          this.marks[this.fieldCount * 4 + 1] = at;
          at += 1;
          state = State.beforeValue;
          break;
        case State.beforeValue:
          if (octet === SP || octet === HT) {
            at += 1;
            break;
          }
          this.#token = at;
          this.#valueEnd = at;
          state = State.value;
          break;
        case State.value: {
          while (at < length && valueOctets[bytes[start + at] ?? 0] === 1) at += 1;
          if (at === length) break;
          const stopper = bytes[start + at];
          if (stopper !== CR) return this.#refuse(stopper === LF ? 'bad_line_end' : 'bad_field_value');
          this.#valueEnd = at;
          at += 1;
          state = State.valueLf;
          break;
        }
        case State.valueLf: {
          if (octet !== LF) return this.#refuse('bad_line_end');
          let valueEnd = this.#valueEnd;
          while (valueEnd > this.#token && isBlank(bytes[start + valueEnd - 1])) valueEnd -= 1;
          this.marks[this.fieldCount * 4 + 2] = this.#token;
          this.marks[this.fieldCount * 4 + 3] = valueEnd;
          this.fieldCount += 1;
          at += 1;
          state = State.fieldStart;
          break;
        }
        case State.endLf:
          if (octet !== LF) return this.#refuse('bad_line_end');
          return at + 1;
      }
    }
    this.#state = state;
    this.#scanned = at;
    return needMore;
  }

  #badFirstLine(): Fault {
    return this.#firstLine === 'status' ? 'bad_status_line' : 'bad_version';
  }
}

function isBlank(octet: number | undefined): boolean {
  return octet === SP || octet === HT;
}
