/** All amounts are tenths of a retry. A fifth of the requests may be retried, as Envoy's retry budget has it, and three a second in any case. */
const perRequest = 2;
const perSecond = 30;
const oneRetry = 10;
/** Keeps a quiet hour from saving up for a storm of retries. */
const maxSaved = 1_000;

const msPerSecond = 1_000;

/** Its two cells. `refilled`: the second in which the least was given last, counted from 1. */
const saved = 0;
const refilled = 1;

/**
 * Keeps retries of sent requests from multiplying the load of replicas that fail because of load. Times are monotonic ms. All threads draw on the
 * same two cells; threads that meet there may give or take a fraction of a retry too much, which does no harm.
 */
export class RetryBudget {
  readonly #cells: Int32Array;

  constructor(cells: Int32Array = new Int32Array(2)) {
    this.#cells = cells;
  }

  /** A request arrived. */
  earn(): void {
    if (Atomics.load(this.#cells, saved) < maxSaved) Atomics.add(this.#cells, saved, perRequest);
  }

  /** Takes one retry; false when there is none left. */
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
