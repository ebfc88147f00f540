/** Collects pieces of a body and returns them as one new buffer. */
export class PieceList {
  readonly #pieces: Buffer[] = [];
  #bytes = 0;

  get isEmpty(): boolean {
    return this.#bytes === 0;
  }

  /** `bytes[from, to)`; the buffer may be overwritten only after `take`. */
  add(bytes: Buffer, from: number, to: number): void {
    this.#pieces.push(bytes.subarray(from, to));
    this.#bytes += to - from;
  }

  addWhole(bytes: Buffer): void {
    this.add(bytes, 0, bytes.length);
  }

  clear(): void {
    this.#pieces.length = 0;
    this.#bytes = 0;
  }

  /** Undefined when there are none. A copy, because HTTP/2 sends it only when its windows allow. */
  take(): Buffer | undefined {
    if (this.#bytes === 0) return undefined;
    const whole = Buffer.concat(this.#pieces, this.#bytes);
    this.clear();
    return whole;
  }
}
