import { idHeader } from './behaviour.ts';

/** A request with a complete head. */
export interface ReadHead {
  readonly method: string;
  readonly id: string;
}

/** Parsed input of a connection. */
export interface RequestEvents {
  readonly onHead: (head: ReadHead) => void;
  /** The body, if any, is complete too. */
  readonly onEnd: () => void;
}

const headEnd = Buffer.from('\r\n\r\n');
const lastChunk = Buffer.from('0\r\n\r\n');
const nothing: Buffer = Buffer.alloc(0);

/**
 * Parses the balancer's requests, which are well-formed; a chunked body must not contain the bytes of the last chunk.
 */
export class RequestReader {
  readonly #events: RequestEvents;
  #unread: Buffer = nothing;
  /** Remaining bytes of the body; undefined in a head, infinite in a chunked body. */
  #left: number | undefined;

  constructor(events: RequestEvents) {
    this.#events = events;
  }

  feed(bytes: Buffer): void {
    this.#unread = this.#unread.length === 0 ? bytes : Buffer.concat([this.#unread, bytes]);
    while (this.#left === undefined ? this.#readHead() : this.#readBody(this.#left));
  }

  #readHead(): boolean {
    const end = this.#unread.indexOf(headEnd);
    if (end < 0) return false;
    const head = this.#unread.toString('latin1', 0, end);
    this.#unread = this.#unread.subarray(end + headEnd.length);
    const field = (name: string): string | undefined => new RegExp(`\r\n${name}: ?([^\r]*)`, 'i').exec(head)?.[1];
    this.#left = /\r\ntransfer-encoding: ?chunked/i.test(head) ? Number.POSITIVE_INFINITY : Number(field('content-length') ?? 0);
    this.#events.onHead({ method: head.slice(0, head.indexOf(' ')), id: field(idHeader) ?? '-' });
    return true;
  }

  #readBody(left: number): boolean {
    const end = left === Number.POSITIVE_INFINITY ? this.#unread.indexOf(lastChunk) : Math.min(left, this.#unread.length);
    if (left === Number.POSITIVE_INFINITY) {
      // The last chunk may be split over two reads.
      if (end < 0) this.#unread = this.#unread.subarray(Math.max(0, this.#unread.length - lastChunk.length));
      if (end < 0) return false;
      this.#unread = this.#unread.subarray(end + lastChunk.length);
    } else {
      this.#unread = this.#unread.subarray(end);
      this.#left = left - end;
      if (this.#left > 0) return false;
    }
    this.#left = undefined;
    this.#events.onEnd();
    return this.#unread.length > 0;
  }
}
