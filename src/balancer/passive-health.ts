/** Consecutive failures that put a replica out for a while. */
const failuresToEject = 5;
const ejectionMs = 10_000;
const maxEjectionMs = 300_000;
/** A replica that refused is most likely starting anew or gone: the next requests go elsewhere without trying it. */
const avoidAfterRefusalMs = 1_000;
const maxSteerAwayMs = 30_000;

/** What requests tell about one replica, between probes. Times are monotonic ms. Pure: it holds no clock. */
export class PassiveHealth {
  #failures = 0;
  #ejections = 0;
  #ejectedUntil = 0;
  #avoidedUntil = 0;

  /** Out of rotation for repeated failures; at most half of the replicas are. */
  isEjected(now: number): boolean {
    return this.#ejectedUntil > now;
  }

  /** To be used only when no other replica is to be had. */
  isAvoided(now: number): boolean {
    return this.#avoidedUntil > now;
  }

  /** When the last of both ends. */
  get markedUntil(): number {
    return Math.max(this.#ejectedUntil, this.#avoidedUntil);
  }

  noteSuccess(): void {
    this.#failures = 0;
  }

  /** A request failed there (refused, reset, timeout, 5xx). `mayEject`: whether another replica may go out. True when this one just did. */
  noteFailure(now: number, mayEject: boolean): boolean {
    this.#failures += 1;
    if (this.#failures < failuresToEject || !mayEject || this.isEjected(now)) return false;
    if (now - this.#ejectedUntil > maxEjectionMs) this.#ejections = 0;
    this.#ejections += 1;
    this.#ejectedUntil = now + Math.min(maxEjectionMs, ejectionMs * this.#ejections);
    this.#failures = 0;
    return true;
  }

  /** Nothing listened there. */
  noteRefusal(now: number): void {
    this.#avoidedUntil = Math.max(this.#avoidedUntil, now + avoidAfterRefusalMs);
  }

  /** The replica itself asked for less (429 or 503 with `Retry-After`): no failure, but others are asked first. */
  steerAway(now: number, ms: number): void {
    this.#avoidedUntil = Math.max(this.#avoidedUntil, now + Math.min(ms, maxSteerAwayMs));
  }
}
