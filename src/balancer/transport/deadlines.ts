import type { Clock } from '../../shared/clock.ts';

/** Work that must be done by a certain time. */
export interface Timed {
  /** By `Deadlines.now`; infinity for never. To prolong or shorten it, assign it. */
  readonly deadlineAt: number;
  /** Called in each sweep after the deadline has passed, until the deadline is moved or the object is deleted. */
  onDeadline(): void;
}

const sweepMs = 100;
/** The most that time advances with one sweep: a later sweep shows that the process itself stood still. */
const longestStepMs = 200;

/**
 * All deadlines of the process under one timer: moving one, which happens with every read, costs an assignment. Up to
 * 0.4 s late, never early. Time in which the process stood still does not count: it proves nothing about peers, whose
 * bytes are unread. The first read happens before any sweep, so it has all of its time left.
 */
export class Deadlines {
  readonly #clock: Clock;
  readonly #timed = new Set<Timed>();
  #now: number;
  #machineNow: number;

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#machineNow = clock.monotonic();
    this.#now = this.#machineNow;
    clock.every(sweepMs, () => this.#sweep());
  }

  /** Ms in which the process ran, up to one sweep old: compare it only with other times of these deadlines. */
  get now(): number {
    return this.#now;
  }

  /** The clock's monotonic ms at the last sweep, to compare with other clocks, such as those of other threads. */
  get machineNow(): number {
    return this.#machineNow;
  }

  in(ms: number): number {
    return this.#now + ms + longestStepMs;
  }

  add(timed: Timed): void {
    this.#timed.add(timed);
  }

  delete(timed: Timed): void {
    this.#timed.delete(timed);
  }

  #sweep(): void {
    const machineNow = this.#clock.monotonic();
    this.#now += Math.min(machineNow - this.#machineNow, longestStepMs);
    this.#machineNow = machineNow;
    for (const timed of this.#timed) if (timed.deadlineAt <= this.#now) timed.onDeadline();
  }
}
