import type { Deadlines, Timed } from './deadlines.ts';

/** What can be asked whether its peer is still there. */
export interface Probed {
  /** Closes it when the peer has reset the connection. */
  probe(): void;
}

const everyMs = 100;

/**
 * Clients that are not read for now, because a replica takes no more of their upload. That one of them has reset its connection would be seen only
 * by reading; so each is asked from time to time, and its replica is free again soon.
 */
export class PausedClients implements Timed {
  deadlineAt = Number.POSITIVE_INFINITY;
  readonly #deadlines: Deadlines;
  readonly #paused = new Set<Probed>();

  constructor(deadlines: Deadlines) {
    this.#deadlines = deadlines;
    deadlines.add(this);
  }

  add(client: Probed): void {
    this.#paused.add(client);
    this.deadlineAt = Math.min(this.deadlineAt, this.#deadlines.now + everyMs);
  }

  delete(client: Probed): void {
    this.#paused.delete(client);
  }

  onDeadline(): void {
    for (const client of this.#paused) client.probe();
    this.deadlineAt = this.#paused.size === 0 ? Number.POSITIVE_INFINITY : this.#deadlines.now + everyMs;
  }
}
