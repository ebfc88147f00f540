/** Of one request's body, so that it can be sent again. */
const maxReplayBytes = 1_048_576;

/** Holds the part of a request's body that was read, for sending it once a connection is there, and for sending it again. */
export class ReplayBuffer {
  readonly #parts: Buffer[] = [];
  /** How many of the parts are copies; the others are views of buffers that others will write over. */
  #kept = 0;
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

  /** `bytes[from, to)`, which may be written over once `keep` was called. `isSent`: a connection has it already, so that it may be given up when there is too much. */
  add(bytes: Buffer, from: number, to: number, isSent: boolean): void {
    if (!this.#isComplete) return;
    this.#bytes += to - from;
    this.#parts.push(bytes.subarray(from, to));
    if (isSent) this.trim();
  }

  /** Copies what was added since the last call: most requests are sent within the read that brought them, and need no copy. */
  keep(): void {
    for (; this.#kept < this.#parts.length; this.#kept += 1) {
      const part = this.#parts[this.#kept];
      if (part !== undefined) this.#parts[this.#kept] = Buffer.from(part);
    }
  }

  /** Gives up on replaying when there is more than the limit. Call it once all parts were sent. */
  trim(): void {
    if (this.#bytes > maxReplayBytes) this.release();
  }

  /** Nothing will be sent again. */
  release(): void {
    if (this.#bytes === 0) return;
    this.#isComplete = false;
    this.#parts.length = 0;
    this.#kept = 0;
    this.#bytes = 0;
  }
}
