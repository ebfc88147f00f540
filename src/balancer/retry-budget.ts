/** Retries allowed for each request that arrives, and in any case for each second. */
const perRequest = 0.2;
const perSecond = 3;
/** Keeps a quiet hour from saving up for a storm of retries. */
const maxSaved = 100;

/** Keeps retries of sent requests from multiplying the load of replicas that fail because of load. Times are monotonic ms. */
export class RetryBudget {
  #saved = perSecond;
  #refilledAt = Number.NEGATIVE_INFINITY;

  /** A request arrived. */
  earn(): void {
    this.#saved = Math.min(maxSaved, this.#saved + perRequest);
  }

  /** Takes one retry; false when there is none left. */
  spend(now: number): boolean {
    if (now - this.#refilledAt >= 1_000) {
      this.#saved = Math.max(this.#saved, perSecond);
      this.#refilledAt = now;
    }
    if (this.#saved < 1) return false;
    this.#saved -= 1;
    return true;
  }
}
