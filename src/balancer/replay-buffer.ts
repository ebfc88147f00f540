/** Of one request's body, so that it can be sent again. */
const maxReplayBytes = 1_048_576;

/** Holds the part of a request's body that was read, for sending it once a connection is there, and for sending it again. */
export class ReplayBuffer {
  readonly #parts: Buffer[] = [];
  #bytes = 0;
  #isComplete = true;

  /** Everything that was added; empty after `release`. */
  get parts(): readonly Buffer[] {
    return this.#parts;
  }

  get bytes(): number {
    return this.#bytes;
  }

  /** Whether everything that was added is still held. */
  get isComplete(): boolean {
    return this.#isComplete;
  }

  /** Keeps a copy of `bytes[from, to)`. `isSent`: a connection has it already, so that it may be given up when there is too much. */
  add(bytes: Buffer, from: number, to: number, isSent: boolean): void {
    if (!this.#isComplete) return;
    this.#bytes += to - from;
    if (!isSent || this.#bytes <= maxReplayBytes) this.#parts.push(Buffer.from(bytes.subarray(from, to)));
    if (isSent) this.trim();
  }

  /** Gives up on replaying when there is more than the limit. Call it once all parts were sent. */
  trim(): void {
    if (this.#bytes > maxReplayBytes) this.release();
  }

  /** Nothing will be sent again. */
  release(): void {
    if (this.#bytes > 0) this.#isComplete = false;
    this.#parts.length = 0;
    this.#bytes = 0;
  }
}
