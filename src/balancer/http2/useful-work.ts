/** Bytes that may always be spent without use: the preface, settings, some pings. */
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
 * Distinguishes a connection in real use from one that only generates load. Every byte that arrives must have served a
 * request.
 *
 * Other bytes count against an allowance: PING, SETTINGS, PRIORITY and WINDOW_UPDATE frames in masses, empty DATA
 * frames, refused heads. Pure.
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

  /** A request arrived whose head has that many bytes when written out. */
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
   * Whether too many of the `bytesRead` since the beginning had no use. `heldBytes` of them belong to bodies and wait
   * until a replica takes them; they are counted as pieces when they are passed on.
   */
  isWasted(bytesRead: number, heldBytes: number, now: number): boolean {
    const refill = ((now - this.#accountedAt) / 1_000) * bytesPerSecond;
    const read = bytesRead - heldBytes;
    this.#accountedAt = now;
    this.#allowance += refill - (read - this.#read) + this.#explained;
    this.#allowance = Math.min(burstBytes, this.#allowance);
    this.#read = read;
    this.#explained = 0;
    // The heads of their frames were read too, and their number is unknown.
    return this.#allowance + heldBytes < 0;
  }
}
