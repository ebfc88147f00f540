import { CR, LF } from './octets.ts';

/** Bytes of the longest blank line, CR LF CR LF: earlier bytes do not matter. */
const longestBoundary = 4;

/**
 * Tracks whether relayed bytes of an event stream end after a complete event: after an empty line. A line ends with CR,
 * LF or both (WHATWG HTML, section 9.2.5).
 */
export class EventBoundary {
  /** The number of line ends with which the relayed bytes end. Two make an empty line. */
  #lineEnds = 2;
  #endsWithCr = false;

  reset(): void {
    this.#lineEnds = 2;
    this.#endsWithCr = false;
  }

  get isBetweenEvents(): boolean {
    return this.#lineEnds >= 2;
  }

  track(bytes: Buffer, from: number, to: number): void {
    let at = to;
    const earliest = Math.max(from, to - longestBoundary);
    while (at > earliest && isLineEnd(bytes[at - 1])) at -= 1;
    if (at > from) {
      this.#lineEnds = 0;
      this.#endsWithCr = false;
    }
    for (; at < to; at += 1) {
      const isCr = bytes[at] === CR;
      // An LF after a CR belongs to the same line end.
      if (isCr || !this.#endsWithCr) this.#lineEnds += 1;
      this.#endsWithCr = isCr;
    }
  }
}

function isLineEnd(octet: number | undefined): boolean {
  return octet === LF || octet === CR;
}
