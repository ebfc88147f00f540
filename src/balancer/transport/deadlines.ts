import type { Clock } from '../../shared/clock.ts';

/** Something that must be done with by a certain time. */
export interface Timed {
  /** Monotonic ms; infinity for never. Changing it is all that is needed to prolong or shorten. */
  readonly deadlineAt: number;
  /** Called in each sweep in which the deadline has passed, until it is moved or the object is forgotten. */
  onDeadline(): void;
}

const sweepMs = 100;
/** A sweep that comes later than this says that the process itself stood still, and proves nothing about its peers. */
const stallMs = 500;

/** All deadlines of the process under one timer: moving one, which happens with every read, costs an assignment. Coarse: up to 0.2 s late. */
export class Deadlines {
  readonly #clock: Clock;
  readonly #timed = new Set<Timed>();
  #now: number;
  #wasStalled = false;

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#now = clock.monotonic();
    clock.every(sweepMs, () => this.#sweep());
  }

  /** Monotonic ms, up to one sweep old. */
  get now(): number {
    return this.#now;
  }

  /** The deadline that is `ms` from now, never early. */
  in(ms: number): number {
    return this.#now + ms + sweepMs;
  }

  add(timed: Timed): void {
    this.#timed.add(timed);
  }

  delete(timed: Timed): void {
    this.#timed.delete(timed);
  }

  #sweep(): void {
    const now = this.#clock.monotonic();
    const isStalled = now - this.#now > sweepMs + stallMs;
    this.#now = now;
    // After a stall the peers' bytes wait to be read: they get one round to arrive before anybody is called late.
    if (isStalled && !this.#wasStalled) {
      this.#wasStalled = true;
      return;
    }
    this.#wasStalled = false;
    for (const timed of this.#timed) if (timed.deadlineAt <= now) timed.onDeadline();
  }
}
