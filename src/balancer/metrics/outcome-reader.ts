import { addOutcomes, boundOutcomes, countedIn, type Outcomes, type ReplicaOutcomes } from '../../domain/outcomes.ts';
import { hasVersions, type SlottedReplica } from '../replicas/replica.ts';
import { outcomeBlock, outcomeCells, outcomesOf } from './row-layout.ts';
import { SlotBlocks } from './slot-blocks.ts';

/** The outcomes of the replicas' requests in all threads, and in processes that handed over to this one. */
export class OutcomeReader {
  readonly #blocks: SlotBlocks;
  #isCompared = false;
  /** Nothing changed at the last call of `read`. */
  #isQuiet = true;
  #present: ReadonlySet<string> = new Set();
  /** Of predecessors. */
  #others: Outcomes = {};
  /** `countedIn` at the last call of `read`. */
  #known: ReadonlyMap<string, number> = new Map();

  constructor(rows: readonly Float64Array[]) {
    this.#blocks = new SlotBlocks(rows, outcomesOf, outcomeBlock);
  }

  setReplicas(replicas: readonly SlottedReplica[]): void {
    this.#present = new Set(replicas.map(({ id }) => String(id)));
    this.#isCompared = hasVersions(replicas);
    if (this.#isCompared) this.#isQuiet = false;
    for (const { slot, id } of replicas) this.#blocks.assign(slot, id);
  }

  /** Adds what a predecessor counted since its last message. */
  add(news: Outcomes): void {
    this.#others = boundOutcomes(addOutcomes(this.#others, news), this.#present);
    this.#isQuiet = false;
  }

  /** Of all replicas, since the process started. */
  total(): Outcomes {
    const own = [...this.#blocks.byReplica()].map(([id, cells]) => [String(id), readCells(cells)] as const);
    return addOutcomes(Object.fromEntries(own), this.#others);
  }

  /**
   * What the reconciler must know: undefined unless the endpoint set has several versions, or counts changed. A replica
   * that left the set is included when its counts changed since the last call: a replica that crashes leaves the set at
   * the moment when its requests fail.
   */
  read(): Outcomes | undefined {
    if (this.#isQuiet && !this.#isCompared) return undefined;
    const all = Object.entries(this.total()).filter(([, one]) => countedIn(one) > 0);
    const before = this.#known;
    this.#known = new Map(all.map(([id, one]) => [id, countedIn(one)]));
    const isChanged = (id: string): boolean => this.#known.get(id) !== before.get(id);
    const news = all.filter(([id]) => (this.#isCompared && this.#present.has(id)) || isChanged(id));
    this.#isQuiet = news.length === 0;
    return this.#isCompared || news.length > 0 ? Object.fromEntries(news) : undefined;
  }
}

function readCells(cells: readonly number[]): ReplicaOutcomes {
  const { responses, errors, firstByteCounts, waitCounts } = outcomeCells;
  return {
    responses: cells[responses] ?? 0,
    errors: cells[errors] ?? 0,
    firstByteCounts: cells.slice(firstByteCounts, waitCounts),
    waitCounts: cells.slice(waitCounts),
  };
}
