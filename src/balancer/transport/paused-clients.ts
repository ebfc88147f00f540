import type { Deadlines, Timed } from './deadlines.ts';

interface Probed {
  /** Closes it when the peer has reset the connection. */
  probe(): void;
}

const everyMs = 100;

/**
 * Clients that the balancer does not read, because a replica takes no more of their upload. Only a read would show that
 * such a client has reset its connection; the periodic check soon frees its replica.
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
