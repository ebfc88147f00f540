/**
 * In tenths of a retry. Each request earns a fifth of a retry, as in Envoy's retry budget. Each second raises a smaller
 * budget to three retries.
 */
const perRequest = 2;
const perSecond = 30;
const oneRetry = 10;
/** An hour without failures must not allow a burst of retries. */
const maxSaved = 1_000;

const msPerSecond = 1_000;

/** The indices of the two cells. `refilled`: the second of the last refill, counted from 1; 0 means never. */
const saved = 0;
const refilled = 1;

/**
 * Limits the retries of requests that were sent: they would multiply the load on replicas that fail under load. Threads
 * share the cells; a race that adds or takes a few tenths is harmless.
 */
export class RetryBudget {
  readonly #cells: Int32Array;

  constructor(cells: Int32Array = new Int32Array(2)) {
    this.#cells = cells;
  }

  /** Adds one request's fifth of a retry. */
  earn(): void {
    if (Atomics.load(this.#cells, saved) < maxSaved) Atomics.add(this.#cells, saved, perRequest);
  }

  /** Takes one retry; false when none is left. `now`: monotonic ms. */
  spend(now: number): boolean {
    this.#refill(now);
    if (Atomics.sub(this.#cells, saved, oneRetry) >= oneRetry) return true;
    Atomics.add(this.#cells, saved, oneRetry);
    return false;
  }

  #refill(now: number): void {
    const second = (Math.floor(now / msPerSecond) + 1) | 0;
    const before = Atomics.load(this.#cells, refilled);
    if (before === second || Atomics.compareExchange(this.#cells, refilled, before, second) !== before) return;
    const missing = perSecond - Atomics.load(this.#cells, saved);
    if (missing > 0) Atomics.add(this.#cells, saved, missing);
  }
}
