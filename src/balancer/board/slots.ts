import type { BalancerReplica } from '../../domain/balancer-link.ts';
import type { Board } from './board.ts';
import { replicaSlots } from './board.ts';
import type { PlacedReplica } from '../replicas/replica.ts';

interface Occupant {
  readonly id: number;
  readonly slot: number;
}

/**
 * Gives each replica, which is an id at an address, its slot in the shared memory. A slot is given to another one only when no set in force mentions
 * the first any more and no thread has a request there.
 */
export class Slots {
  readonly #board: Board;
  /** In the order in which they were freed, so that one is used again as late as can be. */
  readonly #free: number[] = Array.from({ length: replicaSlots }, (_, slot) => slot);
  readonly #told = new Map<string, Occupant>();
  /** Out of the set but perhaps not done with all requests. */
  #leaving: readonly Occupant[] = [];

  constructor(board: Board) {
    this.#board = board;
  }

  /** The set with slots. Replicas for which there is no room are left out: there are 2,048 slots. */
  place(replicas: readonly BalancerReplica[]): readonly PlacedReplica[] {
    const before = new Map(this.#told);
    this.#told.clear();
    const placed: PlacedReplica[] = [];
    for (const replica of replicas) {
      const key = `${replica.id} ${JSON.stringify(replica.address)}`;
      const slot = before.get(key)?.slot ?? this.#take();
      if (slot === undefined) continue;
      before.delete(key);
      this.#told.set(key, { id: replica.id, slot });
      placed.push({ ...replica, slot });
    }
    this.#leaving = [...this.#leaving, ...before.values()];
    return placed;
  }

  /** To be called when the newest set is in force in all threads: frees the slots of replicas that are gone and have no request left. */
  release(): void {
    const done = this.#leaving.filter(({ slot }) => this.#inFlight(slot) === 0);
    this.#leaving = this.#leaving.filter((occupant) => !done.includes(occupant));
    this.#free.push(...done.map(({ slot }) => slot));
  }

  /** Requests under way by replica id; also of replicas that are not part of the service any more and still have some. */
  inFlight(): Readonly<Record<string, number>> {
    const counts: Record<string, number> = {};
    for (const { id, slot } of this.#told.values()) counts[id] = (counts[id] ?? 0) + this.#inFlight(slot);
    for (const { id, slot } of this.#leaving) {
      const count = this.#inFlight(slot);
      if (count > 0) counts[id] = (counts[id] ?? 0) + count;
    }
    return counts;
  }

  #take(): number | undefined {
    const slot = this.#free.shift();
    if (slot !== undefined) this.#board.clearSlot(slot);
    return slot;
  }

  #inFlight(slot: number): number {
    return this.#board.sumOfRows(this.#board.rowCell('inFlight', 0, slot));
  }
}
