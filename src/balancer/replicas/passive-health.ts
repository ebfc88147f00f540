/** Consecutive failures that put a replica out for a while; Envoy's outlier detection has the same number. */
const failuresToEject = 5;
/** For how long the first time, and so much longer each time that follows: a replica that starts anew is back in seconds, and probes look too. */
const ejectionMs = 10_000;
/** As long as Envoy's. */
const maxEjectionMs = 300_000;
/** A replica that refused is most likely starting anew or gone: the next requests go elsewhere without trying it. */
const avoidAfterRefusalMs = 1_000;
/** A replica may say `Retry-After: 3600`, and be fit again much sooner. */
const maxSteerAwayMs = 30_000;

/** What is kept of one replica's health; all threads may work on it at once. Times are monotonic ms. */
export interface HealthRecord {
  /** Consecutive failures. */
  failures: number;
  /** Ejections without a long quiet time between them. */
  ejections: number;
  ejectedUntil: number;
  avoidedUntil: number;
  /** Adds one to `failures`, whoever else does; gives the new number. */
  countFailure(): number;
}

/** What requests tell about one replica, between probes. Times are monotonic ms. Pure: it holds no clock, and its record is given. */
export class PassiveHealth {
  readonly #record: HealthRecord;

  constructor(record: HealthRecord) {
    this.#record = record;
  }

  /** Out of rotation for repeated failures; at most half of the replicas are. */
  isEjected(now: number): boolean {
    return this.#record.ejectedUntil > now;
  }

  /** To be used only when no other replica is to be had. */
  isAvoided(now: number): boolean {
    return this.#record.avoidedUntil > now;
  }

  /** When the last of both ends. */
  get markedUntil(): number {
    return Math.max(this.#record.ejectedUntil, this.#record.avoidedUntil);
  }

  noteSuccess(): void {
    // Mostly it is zero, and memory that is only read can be in the caches of all processors.
    if (this.#record.failures !== 0) this.#record.failures = 0;
  }

  /** A request failed there (refused, reset, timeout, 5xx). `mayEject`: whether another replica may go out. True when this one just did. */
  noteFailure(now: number, mayEject: boolean): boolean {
    const failures = this.#record.countFailure();
    if (failures < failuresToEject || !mayEject || this.isEjected(now)) return false;
    if (now - this.#record.ejectedUntil > maxEjectionMs) this.#record.ejections = 0;
    this.#record.ejections += 1;
    this.#record.ejectedUntil = now + Math.min(maxEjectionMs, ejectionMs * this.#record.ejections);
    this.#record.failures = 0;
    return true;
  }

  /** Nothing listened there. */
  noteRefusal(now: number): void {
    this.#avoidUntil(now + avoidAfterRefusalMs);
  }

  /** The replica itself asked for less (429 or 503 with `Retry-After`): no failure, but others are asked first. */
  steerAway(now: number, ms: number): void {
    this.#avoidUntil(now + Math.min(ms, maxSteerAwayMs));
  }

  #avoidUntil(until: number): void {
    this.#record.avoidedUntil = Math.max(this.#record.avoidedUntil, until);
  }
}
