/** Bytes that may always be spent without use: the preface, settings, some pings. */
const burstBytes = 65_536;
const bytesPerSecond = 4_096;
/** HEADERS, PRIORITY, WINDOW_UPDATE and RST_STREAM frames of one stream. */
const bytesPerStream = 256;
/** The head of a DATA frame, and a little padding. */
const bytesPerPiece = 32;
/** Two WINDOW_UPDATE frames and a PING: the usual answer of clients to a DATA frame. */
const bytesPerAnswer = 64;
/** Clients answer a frame of 16 KiB with two WINDOW_UPDATE frames. */
const bodyBytesPerByte = 256;

/**
 * Detects connections that only generate load. Bytes without use reduce an allowance: masses of PING, SETTINGS,
 * PRIORITY and WINDOW_UPDATE frames, empty DATA frames, refused heads. Pure.
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

  /** `headBytes`: of the uncompressed head. */
  request(headBytes: number): void {
    this.#explained += headBytes + bytesPerStream;
  }

  piece(bytes: number): void {
    this.#explained += bytes + bytesPerPiece;
  }

  answer(bytes: number): void {
    this.#explained += bytesPerAnswer + Math.ceil(bytes / bodyBytesPerByte);
  }

  /**
   * Whether too many of all `bytesRead` had no use. `heldBytes`: of bodies that wait for a replica; they count as
   * pieces when passed on.
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
