/** Connections may be refused far faster than requests arrive. Then their lines would replace all others in the log. */
const linesPerSecond = 20;

/** Limits the lines about refused connections of one thread. The metrics count all but plain HTTP at a TLS port. Pure. */
export class LineRate {
  #second = Number.NEGATIVE_INFINITY;
  #lines = 0;

  /** Whether the limit has room for one more line. `now`: monotonic ms. */
  admits(now: number): boolean {
    const second = Math.floor(now / 1_000);
    if (second !== this.#second) this.#lines = 0;
    this.#second = second;
    this.#lines += 1;
    return this.#lines <= linesPerSecond;
  }
}
