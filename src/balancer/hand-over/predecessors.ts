import type { RemainingCommand, ReplicasCommand } from '../../domain/balancer-link.ts';
import type { Notify } from '../control/control-server.ts';

/** How long to wait for the first report of a predecessor, and for its confirmation of a set, ms. */
const reportTimeoutMs = 2_000;

/**
 * Processes that handed over to this one and finish their requests, which count as this process's own. They apply the
 * endpoint sets that this process receives.
 */
export class Predecessors {
  readonly #all = new Map<Notify, RemainingCommand>();
  #awaited: number;
  readonly #awaitedUntil: number;
  #requests = 0;
  #errors = 0;

  /** `now`: monotonic ms. */
  constructor(awaited: number, now: number) {
    this.#awaited = awaited;
    this.#awaitedUntil = now + reportTimeoutMs;
  }

  get count(): number {
    return this.#all.size;
  }

  /** Whether all expected predecessors have reported, or `reportTimeoutMs` has passed. */
  isComplete(now: number): boolean {
    return this.#awaited <= 0 || now >= this.#awaitedUntil;
  }

  /** Records the counts of a predecessor, and answers its first report with the newest endpoint set. */
  record(notify: Notify, remaining: RemainingCommand, newest: ReplicasCommand | undefined): void {
    if (!this.#all.has(notify)) {
      this.#awaited -= 1;
      if (newest !== undefined) notify(newest);
    }
    this.#all.set(notify, remaining);
    this.#requests += remaining.requests;
    this.#errors += remaining.errors;
  }

  /** A client disconnected. If it was a predecessor, its requests no longer count as in flight. */
  forget(notify: Notify): void {
    this.#all.delete(notify);
  }

  send(command: ReplicasCommand): void {
    for (const notify of this.#all.keys()) notify(command);
  }

  /** Whether all predecessors apply a set, or had `reportTimeoutMs` for it since `sentAt`. Times are monotonic ms. */
  haveApplied({ epoch, revision }: ReplicasCommand, sentAt: number, now: number): boolean {
    if (now - sentAt >= reportTimeoutMs) return true;
    if (!this.isComplete(now)) return false;
    return [...this.#all.values()].every(({ applied }) => applied?.epoch === epoch && applied.revision >= revision);
  }

  get totals(): { readonly requests: number; readonly errors: number } {
    return { requests: this.#requests, errors: this.#errors };
  }

  addInFlight(own: Readonly<Record<string, number>>): Readonly<Record<string, number>> {
    const sums: Record<string, number> = { ...own };
    for (const { inFlight } of this.#all.values()) {
      for (const [id, count] of Object.entries(inFlight)) if (count > 0) sums[id] = (sums[id] ?? 0) + count;
    }
    return sums;
  }
}
