/** An upload must keep up with this on average, bytes per second. As Kestrel's `MinRequestBodyDataRate`, below any line that people use. */
export const minBytesPerSecond = 240;
/** What a new upload may take without having sent anything, ms. */
export const graceMs = 10_000;
/** How far ahead of the rate an upload can get: for so long it may stall afterwards, ms. Without a limit, one fast megabyte would buy an hour. */
export const maxAheadMs = 60_000;

/**
 * The pace of one request's body. Each byte buys time, waiting for the client spends it; time in which the balancer itself does not read, because
 * the replica takes no more, costs nothing. Pure; times are monotonic ms.
 */
export class BodyRate {
  /** Left at `#countedAt`. */
  #aheadMs = graceMs;
  #countedAt: number;
  #isHeldUp = false;

  /** The head was read at `now`, and a body is to come. */
  constructor(now: number) {
    this.#countedAt = now;
  }

  /** When the upload becomes too slow if nothing more comes; infinity while it is held up. */
  get tooSlowAt(): number {
    return this.#isHeldUp ? Number.POSITIVE_INFINITY : this.#countedAt + this.#aheadMs;
  }

  /** Bytes of the body were read. */
  received(now: number, bytes: number): void {
    this.#count(now);
    this.#aheadMs = Math.min(maxAheadMs, this.#aheadMs + (bytes * 1_000) / minBytesPerSecond);
  }

  /** The client is not read from now on. */
  holdUp(now: number): void {
    this.#count(now);
    this.#isHeldUp = true;
  }

  /** It is read again. */
  goOn(now: number): void {
    this.#count(now);
    this.#isHeldUp = false;
  }

  #count(now: number): void {
    if (!this.#isHeldUp) this.#aheadMs = Math.max(0, this.#aheadMs - (now - this.#countedAt));
    this.#countedAt = now;
  }
}
