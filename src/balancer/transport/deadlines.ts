import type { Clock } from '../../shared/clock.ts';

/** Something that must be done with by a certain time. */
export interface Timed {
  /** By `Deadlines.now`; infinity for never. Changing it is all that is needed to prolong or shorten. */
  readonly deadlineAt: number;
  /** Called in each sweep in which the deadline has passed, until it is moved or the object is forgotten. */
  onDeadline(): void;
}

const sweepMs = 100;
/** How far time moves with one sweep at most: one that comes later says that the process itself stood still. */
const longestStepMs = 200;

/**
 * All deadlines of the process under one timer: moving one, which happens with every read, costs an assignment. Coarse: up to 0.4 s late, never early.
 *
 * Time in which the process stood still (a machine that has no processor for it, or was suspended) does not count, as it proves nothing about peers:
 * what they sent meanwhile is still to be read, and what is read first, before any sweep, has all of its time before it.
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

  /** Ms in which the process ran, up to one sweep old: only for what is compared with other times of these deadlines. */
  get now(): number {
    return this.#now;
  }

  /** The clock's monotonic ms at the last sweep, for what is compared with other clocks, such as those of other threads. */
  get machineNow(): number {
    return this.#machineNow;
  }

  /** The deadline that is `ms` from now, never early. */
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
