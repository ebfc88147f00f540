import type { RemainingCommand, ReplicasCommand } from '../../domain/balancer-link.ts';
import type { Tell } from '../control/control-server.ts';

/** How long we wait for what a process that handed over to us has left, ms. */
const patienceMs = 2_000;

/** Processes that handed over and still finish what they had: their requests count as ours, and they follow the sets that we are given. */
export class Predecessors {
  readonly #all = new Map<Tell, RemainingCommand>();
  /** How many will connect within moments. */
  #awaited: number;
  readonly #awaitedUntil: number;
  #requests = 0;
  #errors = 0;

  /** `now`: monotonic ms. */
  constructor(awaited: number, now: number) {
    this.#awaited = awaited;
    this.#awaitedUntil = now + patienceMs;
  }

  /** How many there are. */
  get count(): number {
    return this.#all.size;
  }

  /** Whether all that were to be expected have been heard of, so that figures are whole. */
  isComplete(now: number): boolean {
    return this.#awaited <= 0 || now >= this.#awaitedUntil;
  }

  /** One says what it has. `newest` is sent to one that is heard of for the first time. */
  note(tell: Tell, remaining: RemainingCommand, newest: ReplicasCommand | undefined): void {
    if (!this.#all.has(tell)) {
      this.#awaited -= 1;
      if (newest !== undefined) tell(newest);
    }
    this.#all.set(tell, remaining);
    this.#requests += remaining.requests;
    this.#errors += remaining.errors;
  }

  /** A link broke. */
  forget(tell: Tell): void {
    this.#all.delete(tell);
  }

  /** Sends a set to all. */
  send(command: ReplicasCommand): void {
    for (const tell of this.#all.keys()) tell(command);
  }

  /** Whether all have a set in force, or had `patienceMs` for it since `sentAt`; times are monotonic ms. */
  haveApplied({ epoch, revision }: ReplicasCommand, sentAt: number, now: number): boolean {
    if (now - sentAt >= patienceMs) return true;
    if (!this.isComplete(now)) return false;
    return [...this.#all.values()].every(({ applied }) => applied?.epoch === epoch && applied.revision >= revision);
  }

  /** Requests and errors that they told of so far. */
  get totals(): { readonly requests: number; readonly errors: number } {
    return { requests: this.#requests, errors: this.#errors };
  }

  /** Adds what they have under way, by replica id. */
  addInFlight(own: Readonly<Record<string, number>>): Readonly<Record<string, number>> {
    const sums: Record<string, number> = { ...own };
    for (const { inFlight } of this.#all.values()) {
      for (const [id, count] of Object.entries(inFlight)) if (count > 0) sums[id] = (sums[id] ?? 0) + count;
    }
    return sums;
  }
}
