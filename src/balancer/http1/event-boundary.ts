import { CR, LF } from './octets.ts';

/** Of the longest blank line, CR LF CR LF: what stands before it does not matter. */
const longestBoundary = 4;

/**
 * Knows whether what was relayed of an event stream ends in a whole event, in whatever pieces it came. An event ends with an empty line,
 * and a line with CR, LF or both (WHATWG HTML, section 9.2.5).
 */
export class EventBoundary {
  /** Line ends at the end of what was seen; 2 are an empty line. */
  #lineEnds = 2;
  #endsWithCr = false;

  /** Nothing was seen yet, so that an event may begin. */
  reset(): void {
    this.#lineEnds = 2;
    this.#endsWithCr = false;
  }

  get isBetweenEvents(): boolean {
    return this.#lineEnds >= 2;
  }

  /** `bytes[from, to)` is relayed. */
  note(bytes: Buffer, from: number, to: number): void {
    let at = to;
    const earliest = Math.max(from, to - longestBoundary);
    while (at > earliest && isLineEnd(bytes[at - 1])) at -= 1;
    if (at > from) {
      this.#lineEnds = 0;
      this.#endsWithCr = false;
    }
    for (; at < to; at += 1) {
      const isCr = bytes[at] === CR;
      // LF behind CR belongs to the same line end.
      if (isCr || !this.#endsWithCr) this.#lineEnds += 1;
      this.#endsWithCr = isCr;
    }
  }
}

function isLineEnd(octet: number | undefined): boolean {
  return octet === LF || octet === CR;
}
