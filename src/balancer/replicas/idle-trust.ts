/** A replica is trusted to keep idle connections once one of its connections was idle for this long. */
const provenMs = 250;
/** Longer idle connections never carry a request that may not be sent twice: servers close them after some seconds. */
const maxIdleMs = 1_000;
/** How long the balancer remembers that a replica closed a connection that was idle for less than that. */
const distrustMs = 60_000;

/**
 * Whether a request that may not run twice may use an idle connection. The replica may be closing it right now, and
 * then it is unknown whether it read the request. So it must first have kept an idle connection. Pure; times are
 * monotonic ms.
 */
export class IdleTrust {
  #isProven = false;
  #distrustedUntil = Number.NEGATIVE_INFINITY;

  /** A connection is still open after being idle for `idleMs`. */
  recordAlive(now: number, idleMs: number): void {
    if (!this.#isProven && idleMs >= provenMs && now >= this.#distrustedUntil) this.#isProven = true;
  }

  /** The replica closed a connection that had been idle for `idleMs`. */
  recordClosed(now: number, idleMs: number): void {
    if (idleMs > maxIdleMs) return;
    this.#isProven = false;
    this.#distrustedUntil = now + distrustMs;
  }

  /** Whether a connection that was idle for `idleMs` may carry such a request. */
  allows(idleMs: number): boolean {
    return this.#isProven && idleMs <= maxIdleMs;
  }
}
