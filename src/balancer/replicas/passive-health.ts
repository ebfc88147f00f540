import type { BrokenRequests } from '../../domain/balancer-link.ts';

/** Consecutive failures that eject a replica for a while; same as Envoy's outlier detection. */
export const failuresToEject = 5;
/**
 * Duration of the first ejection; each later one in a row lasts this much longer. A replica that restarts is back in
 * seconds, and the reconciler probes it too.
 */
const ejectionMs = 10_000;
/** Same as Envoy's. */
const maxEjectionMs = 300_000;
/** Failures this far apart do not count as consecutive: clients may have cut off all long responses in between. */
const longestGapMs = maxEjectionMs;
/** A replica that refused a connection is most likely restarting or gone: the next requests skip it. */
const avoidAfterRefusalMs = 1_000;
/** A replica may answer `Retry-After: 3600` and recover much sooner. */
const maxAvoidMs = 30_000;

/** One replica's health record; all threads may update it concurrently. Times are monotonic ms. */
export interface HealthRecord {
  failures: number;
  failedAt: number;
  /** Ejections without a long quiet time between them. */
  ejections: number;
  ejectedUntil: number;
  avoidedUntil: number;
  /** Requests without a first byte, since the last one that got one. */
  hung: number;
  /** Requests whose connection or response broke off, since the last complete response. */
  cutOff: number;
  /** The first and the last of these requests. */
  brokenSince: number;
  brokenAt: number;
  countBroken(how: 'hung' | 'cutOff'): void;
  /** Adds one to `failures` atomically; returns the new number. */
  countFailure(): number;
}

/** Requests that wait for the first byte of a replica that is silent since `since`. Times are monotonic ms. */
interface WaitingRequests {
  readonly waiting: number;
  readonly since: number;
  readonly now: number;
}

/** What requests reveal about one replica, between probes. Times are monotonic ms. Pure. */
export class PassiveHealth {
  readonly #record: HealthRecord;

  constructor(record: HealthRecord) {
    this.#record = record;
  }

  /** Ejected for repeated failures; at most half of the replicas are. */
  isEjected(now: number): boolean {
    return this.#record.ejectedUntil > now;
  }

  /** The balancer uses it only when no other replica is available. */
  isAvoided(now: number): boolean {
    return this.#record.avoidedUntil > now;
  }

  get markedUntil(): number {
    return Math.max(this.#record.ejectedUntil, this.#record.avoidedUntil);
  }

  recordSuccess(): void {
    // Without the check, each success would evict the mostly zero cell from the other processors' caches.
    if (this.#record.failures !== 0) this.#record.failures = 0;
    this.recordComplete();
  }

  /** A response of any status came to its end. */
  recordComplete(): void {
    if (this.#record.cutOff !== 0) this.#record.cutOff = 0;
  }

  /** A response has begun: the replica does not hang. */
  recordHead(): void {
    if (this.#record.hung !== 0) this.#record.hung = 0;
  }

  /**
   * A request got no complete response: it waited in vain for its first byte (`hung`), or broke off. `now`: monotonic ms
   * of the machine, which all threads share.
   */
  recordBroken(now: number, how: 'hung' | 'cutOff'): void {
    if (now - this.#record.brokenAt > longestGapMs) {
      this.#record.hung = 0;
      this.#record.cutOff = 0;
    }
    if (this.#record.hung + this.#record.cutOff === 0) this.#record.brokenSince = now;
    this.#record.brokenAt = now;
    this.#record.countBroken(how);
  }

  /**
   * The requests in a row without a complete response, with those that wait at a silent replica now; undefined while they
   * are too few to prove anything.
   */
  broken({ waiting, since, now }: WaitingRequests): BrokenRequests | undefined {
    const { hung, cutOff, brokenSince, brokenAt } = this.#record;
    const ended = hung + cutOff;
    if (ended + waiting < failuresToEject) return undefined;
    const [first, last] = [ended > 0 ? brokenSince : since, waiting > 0 ? now : brokenAt];
    const seconds = (until: number): number => Math.floor((until - first) / 1_000);
    return { hung: hung + waiting, cutOff, seconds: seconds(last), ageSeconds: seconds(now) };
  }

  /**
   * A request failed there (refused, reset, timeout, 5xx, truncated). True when this ejected the replica; without
   * `mayEject`, it never does.
   */
  recordFailure(now: number, mayEject: boolean): boolean {
    if (now - this.#record.failedAt > longestGapMs) this.#record.failures = 0;
    this.#record.failedAt = now;
    const failures = this.#record.countFailure();
    if (failures < failuresToEject || !mayEject || this.isEjected(now)) return false;
    if (now - this.#record.ejectedUntil > maxEjectionMs) this.#record.ejections = 0;
    this.#record.ejections += 1;
    this.#record.ejectedUntil = now + Math.min(maxEjectionMs, ejectionMs * this.#record.ejections);
    this.#record.failures = 0;
    return true;
  }

  undoEjection(now: number): void {
    this.#record.ejections -= 1;
    this.#record.ejectedUntil = now;
    this.#record.failures = failuresToEject;
  }

  recordRefusal(now: number): void {
    this.#avoidUntil(now + avoidAfterRefusalMs);
  }

  /** The replica asked for less load (429 or 503 with `Retry-After`): no failure, but the balancer prefers others. */
  avoid(now: number, ms: number): void {
    this.#avoidUntil(now + Math.min(ms, maxAvoidMs));
  }

  #avoidUntil(until: number): void {
    this.#record.avoidedUntil = Math.max(this.#record.avoidedUntil, until);
  }
}
