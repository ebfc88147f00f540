interface SlotOwner {
  readonly replicaId: number;
  /** The earlier values of the slot's cells. */
  readonly before: readonly number[];
}

/** The blocks of the replica slots, added up over the rows of all threads. */
export class SlotBlocks {
  readonly #rows: readonly Float64Array[];
  readonly #startOf: (slot: number) => number;
  readonly #length: number;
  readonly #owners = new Map<number, SlotOwner>();

  constructor(rows: readonly Float64Array[], startOf: (slot: number) => number, length: number) {
    this.#rows = rows;
    this.#startOf = startOf;
    this.#length = length;
  }

  /** From now on the slot counts for that replica, from 0. Until this call it counts for the previous replica. */
  assign(slot: number, replicaId: number): void {
    if (this.#owners.get(slot)?.replicaId !== replicaId) this.#owners.set(slot, { replicaId, before: this.sum(slot) });
  }

  /** By ascending id. A replica that moved to another address may have had two slots. */
  byReplica(): ReadonlyMap<number, readonly number[]> {
    const replicas = new Map<number, readonly number[]>();
    for (const [slot, { replicaId, before }] of this.#owners) {
      const now = this.sum(slot).map((value, index) => value - (before[index] ?? 0));
      const other = replicas.get(replicaId);
      replicas.set(replicaId, other === undefined ? now : now.map((value, index) => value + (other[index] ?? 0)));
    }
    return new Map([...replicas].toSorted(([a], [b]) => a - b));
  }

  /** The cells of one block, since the memory was allocated. */
  sum(slot: number): readonly number[] {
    const start = this.#startOf(slot);
    const total = (at: number): number => this.#rows.reduce((sum, row) => sum + (row[at] ?? 0), 0);
    return Array.from({ length: this.#length }, (_, index) => total(start + index));
  }
}
