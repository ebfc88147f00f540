/** A replica's idle connections are found to last once one of them did for so long. */
const provenMs = 250;
/** Connections idle for longer never carry a request that may not be sent twice: common servers close them after some seconds. */
const maxIdleMs = 1_000;
/** How long it is remembered that a replica closed a connection which had been idle for less than that. */
const distrustMs = 60_000;

/**
 * Whether a request that may not run twice may go over a connection that has been idle. The replica may be closing it at this very moment, and then
 * nobody can say whether the request was read: so the replica must have shown that it keeps idle connections. Pure; times are monotonic ms.
 */
export class IdleTrust {
  #isProven = false;
  #distrustedUntil = Number.NEGATIVE_INFINITY;

  /** A connection is still there after being idle for `idleMs`. */
  noteAlive(now: number, idleMs: number): void {
    if (!this.#isProven && idleMs >= provenMs && now >= this.#distrustedUntil) this.#isProven = true;
  }

  /** The replica closed a connection that had been idle for `idleMs`. */
  noteClosed(now: number, idleMs: number): void {
    if (idleMs > maxIdleMs) return;
    this.#isProven = false;
    this.#distrustedUntil = now + distrustMs;
  }

  /** Whether a connection that was idle for `idleMs` may carry such a request. */
  allows(idleMs: number): boolean {
    return this.#isProven && idleMs <= maxIdleMs;
  }
}
