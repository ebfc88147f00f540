/** A replica is trusted to keep idle connections once one of its connections was idle for this long. */
const provenMs = 250;
/** Longer idle connections never carry a request that may not be sent twice: servers close them after some seconds. */
const maxIdleMs = 1_000;
/** How long the balancer remembers that a replica closed a connection that was idle for at most `maxIdleMs`. */
const distrustMs = 60_000;

/**
 * Whether a request that may not run twice may use an idle connection. If the replica closes it at that moment, it is
 * unknown whether the replica read the request. So the replica must first have kept an idle connection. Pure; times are
 * monotonic ms.
 */
export class IdleTrust {
  #isProven = false;
  #distrustedUntil = Number.NEGATIVE_INFINITY;

  recordAlive(now: number, idleMs: number): void {
    if (!this.#isProven && idleMs >= provenMs && now >= this.#distrustedUntil) this.#isProven = true;
  }

  recordClosed(now: number, idleMs: number): void {
    if (idleMs > maxIdleMs) return;
    this.#isProven = false;
    this.#distrustedUntil = now + distrustMs;
  }

  allows(idleMs: number): boolean {
    return this.#isProven && idleMs <= maxIdleMs;
  }
}
