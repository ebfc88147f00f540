import type { Deadlines, Timed } from './deadlines.ts';

/** A request that waits for a replica, perhaps several times. Each time exactly one of the two is called, unless it leaves before. */
export interface Waiting {
  /** Monotonic ms, set when it first enters: looking in vain does not prolong the wait. */
  giveUpAt: number | undefined;
  /** A replica may be there now. */
  tryAgain(): void;
  /** It has waited for as long as it may. */
  giveUp(): void;
}

/** A service that had no replica for so long does not come back within moments: its clients are told at once. */
const recentlyMs = 30_000;
/** Requests that wait at most; beyond, clients are told at once. */
const places = 1_000;
/** How often a waiting request looks again though no news came, ms: a replica that refused may have recovered. */
const lookEveryMs = 300;

/** Requests that met no replica that could take them although there were some a moment ago: they wait for the next one instead of failing. */
export class WaitingRoom implements Timed {
  readonly #deadlines: Deadlines;
  readonly #longestWaitMs: number;
  /** In order of arrival. */
  readonly #waiting = new Set<Waiting>();
  #servedAt = Number.NEGATIVE_INFINITY;
  #isServing = false;
  deadlineAt = Number.POSITIVE_INFINITY;

  /** `longestWaitMs`: of one request in all. */
  constructor(deadlines: Deadlines, longestWaitMs: number) {
    this.#longestWaitMs = longestWaitMs;
    this.#deadlines = deadlines;
    deadlines.add(this);
  }

  /** Requests that wait now. */
  get size(): number {
    return this.#waiting.size;
  }

  /** Lets a request wait; false when it must be answered at once. */
  enter(waiting: Waiting): boolean {
    const { now } = this.#deadlines;
    const isHopeful = this.#isServing || now - this.#servedAt < recentlyMs;
    waiting.giveUpAt ??= now + this.#longestWaitMs;
    if (!isHopeful || this.#waiting.size >= places || waiting.giveUpAt <= now) return false;
    this.#waiting.add(waiting);
    this.deadlineAt = Math.min(this.deadlineAt, now + lookEveryMs);
    return true;
  }

  /** It does not wait any more. */
  leave(waiting: Waiting): void {
    this.#waiting.delete(waiting);
  }

  /** A new set of replicas is in force. */
  replicasChanged(hasServing: boolean): void {
    if (this.#isServing && !hasServing) this.#servedAt = this.#deadlines.now;
    this.#isServing = hasServing;
    if (hasServing) this.#lookAgain();
  }

  onDeadline(): void {
    const { now } = this.#deadlines;
    for (const waiting of this.#waiting) {
      if ((waiting.giveUpAt ?? now) > now) continue;
      this.#waiting.delete(waiting);
      waiting.giveUp();
    }
    if (this.#isServing) this.#lookAgain();
    this.deadlineAt = this.#waiting.size === 0 ? Number.POSITIVE_INFINITY : now + lookEveryMs;
  }

  /** Each that finds nothing enters again, behind the others. */
  #lookAgain(): void {
    const before = [...this.#waiting];
    this.#waiting.clear();
    for (const waiting of before) waiting.tryAgain();
  }
}
