/** Bytes that may always be spent on nothing: the preface, settings, some pings. */
const burstBytes = 65_536;
const bytesPerSecond = 4_096;
/** HEADERS, PRIORITY, WINDOW_UPDATE and RST_STREAM frames of one stream. */
const bytesPerStream = 256;
/** The head of a DATA frame, and a little padding. */
const bytesPerPiece = 32;
/** Two WINDOW_UPDATE frames and a PING, which is what clients answer a DATA frame with. */
const bytesPerAnswer = 64;
/** A frame of 16 KiB has two WINDOW_UPDATE frames as its answer. */
const bodyBytesPerByte = 256;

/**
 * Tells a connection that is used from one that is only kept busy. Whatever arrives on it must have served a request: what did not, such as PING,
 * SETTINGS, PRIORITY and WINDOW_UPDATE frames in masses, empty DATA frames, heads that are refused, is counted against an allowance. Pure.
 */
export class UsefulWork {
  #allowance = burstBytes;
  #accountedAt: number;
  #explained = 0;
  #read = 0;

  /** `now`: monotonic ms. */
  constructor(now: number) {
    this.#accountedAt = now;
  }

  /** A request arrived whose head is of that many bytes when written out. */
  request(headBytes: number): void {
    this.#explained += headBytes + bytesPerStream;
  }

  /** A piece of a request's body arrived. */
  piece(bytes: number): void {
    this.#explained += bytes + bytesPerPiece;
  }

  /** A piece of a response was sent. */
  answer(bytes: number): void {
    this.#explained += bytesPerAnswer + Math.ceil(bytes / bodyBytesPerByte);
  }

  /**
   * Whether too much of what was read, `bytesRead` since the beginning, was for nothing. `heldBytes` of it belong to bodies and wait until a replica
   * takes them; they are told of as pieces when they go on.
   */
  isWasted(bytesRead: number, heldBytes: number, now: number): boolean {
    const refill = ((now - this.#accountedAt) / 1_000) * bytesPerSecond;
    const read = bytesRead - heldBytes;
    this.#accountedAt = now;
    this.#allowance += refill - (read - this.#read) + this.#explained;
    this.#allowance = Math.min(burstBytes, this.#allowance);
    this.#read = read;
    this.#explained = 0;
    // The heads of the frames that they came in were read too, and nobody knows how many there are.
    return this.#allowance + heldBytes < 0;
  }
}
