import type { BalancerReplica } from '../../domain/balancer-link.ts';
import type { Board } from './board.ts';
import { replicaSlots } from './board.ts';
import type { SlottedReplica } from '../replicas/replica.ts';

interface Occupant {
  readonly id: number;
  readonly slot: number;
}

/**
 * Assigns a slot to each replica (an id at an address). A slot is reused only when no set in force contains its old
 * replica and no thread has a request there.
 */
export class Slots {
  readonly #board: Board;
  /** In the order in which they were freed: each is reused as late as possible. */
  readonly #free: number[] = Array.from({ length: replicaSlots }, (_, slot) => slot);
  readonly #assigned = new Map<string, Occupant>();
  /** Removed from the set, but possibly with requests in flight. */
  #draining: readonly Occupant[] = [];

  constructor(board: Board) {
    this.#board = board;
  }

  /** The set with slots; leaves out replicas beyond `replicaSlots`. */
  assign(replicas: readonly BalancerReplica[]): readonly SlottedReplica[] {
    const before = new Map(this.#assigned);
    this.#assigned.clear();
    const slotted: SlottedReplica[] = [];
    for (const replica of replicas) {
      const key = `${replica.id} ${JSON.stringify(replica.address)}`;
      const slot = before.get(key)?.slot ?? this.#take();
      if (slot === undefined) continue;
      before.delete(key);
      this.#assigned.set(key, { id: replica.id, slot });
      slotted.push({ ...replica, slot });
    }
    this.#draining = [...this.#draining, ...before.values()];
    return slotted;
  }

  /** Frees the slots of removed replicas without requests. Call it when the newest set is in force in all threads. */
  release(): void {
    const done = this.#draining.filter(({ slot }) => this.#inFlight(slot) === 0);
    this.#draining = this.#draining.filter((occupant) => !done.includes(occupant));
    this.#free.push(...done.map(({ slot }) => slot));
  }

  /** Requests in flight by replica id, including removed replicas that still have some. */
  inFlight(): Readonly<Record<string, number>> {
    const counts: Record<string, number> = {};
    for (const { id, slot } of this.#assigned.values()) counts[id] = (counts[id] ?? 0) + this.#inFlight(slot);
    for (const { id, slot } of this.#draining) {
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
