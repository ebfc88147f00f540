/** A close frame with status 1001 (going away), as a server sends it: unmasked (RFC 6455, sections 5.5.1 and 7.4.1). */
export const goingAwayFrame = '\u0088\u0002\u0003\u00e9';

/** Bytes of a frame's head before the length that may follow in 2 or 8 more. */
const shortHead = 2;

/**
 * Tracks whether another frame may be inserted into a server's stream of WebSocket frames. Parses only the heads (RFC
 * 6455, section 5.2) and trusts their lengths, as the client does.
 */
export class WebSocketFrames {
  #headBytes = 0;
  /** As far as it is known. */
  #headLength = shortHead;
  /** Where in the head its length ends and a mask may begin. */
  #lengthEnd = shortHead;
  #payload = 0;

  get isBetweenFrames(): boolean {
    return this.#headBytes === 0 && this.#payload === 0;
  }

  track(bytes: Uint8Array, from: number, to: number): void {
    let at = from;
    while (at < to) {
      if (this.#headBytes === 0 && this.#payload > 0) {
        const skipped = Math.min(this.#payload, to - at);
        this.#payload -= skipped;
        at += skipped;
      } else {
        this.#trackHead(bytes[at] ?? 0);
        at += 1;
      }
    }
  }

  #trackHead(octet: number): void {
    this.#headBytes += 1;
    if (this.#headBytes === shortHead) this.#readShortLength(octet);
    else if (this.#headBytes > shortHead && this.#headBytes <= this.#lengthEnd) this.#payload = this.#payload * 256 + octet;
    if (this.#headBytes < this.#headLength) return;
    this.#headBytes = 0;
    this.#headLength = shortHead;
  }

  #readShortLength(octet: number): void {
    const length = octet & 0x7f;
    const extra = length === 127 ? 8 : length === 126 ? 2 : 0;
    this.#payload = extra === 0 ? length : 0;
    this.#lengthEnd = shortHead + extra;
    // Servers do not mask, but a masked frame has four bytes more.
    this.#headLength = this.#lengthEnd + (octet >= 0x80 ? 4 : 0);
  }
}
