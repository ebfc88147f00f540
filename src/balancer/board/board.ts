/**
 * The memory that the threads of one balancer share. It is all whole numbers of 32 bits. What counts *now* (requests under way, waiting,
 * connections) is kept in rows, one for each thread, which only that thread writes: what a dead thread had counted is taken back by setting its row
 * to zero, and no lock exists that it could have held. What is known of a replica is kept once, in the replica's slot.
 */

/** Replicas that can be known at once, those included that still finish requests after they were taken out. */
export const replicaSlots = 2_048;

/** Times are kept in tenths of a second since the machine started: 32 bits last for 6.8 years. */
const msPerTick = 100;

/** 64 bytes: threads that write side by side must not write to the same line of a processor's cache. */
const cellsOfCacheLine = 16;

/** One of each for the whole balancer. */
const common = { generation: 0, threads: 1, markedUntil: 2, budget: 3 } as const;
const budgetCells = 2;

/** One of each for each thread. */
const ofThread = { requests: 0, errors: 1, connections: 2, queued: 3, queuedKibibytes: 4 } as const;

/** A figure of one thread. `requests` and `errors` begin anew after 2^32. */
export type ThreadFigure = keyof typeof ofThread;

/** Figures that say what is so at this moment; of a dead thread nothing of it is. */
const momentary: readonly ThreadFigure[] = ['connections', 'queued', 'queuedKibibytes'];

/** One of each for each thread and replica. */
const ofRow = { inFlight: 0, unanswered: 1, waitingSince: 2, heardAt: 3, answers: 4, answerMs: 5 } as const;

/**
 * What a thread counts of a replica. `inFlight`: attempts. `unanswered`: requests sent there of which no byte came back yet.
 * `waitingSince`: tick at which the first of them was sent. `heardAt`: tick of the last byte from there. `answers`: first bytes so far, which begin
 * anew after 2^32. `answerMs`: how long they usually took lately.
 */
export type RowFigure = keyof typeof ofRow;
const rowFigures = Object.keys(ofRow).length;

/** One of each for each replica. */
const ofSlot = { lastChoice: 0, failures: 1, ejections: 2, ejectedUntil: 3, avoidedUntil: 4, isStalled: 5 } as const;

/** What all threads know of a replica. */
export type SlotFigure = keyof typeof ofSlot;
const slotFigures = Object.keys(ofSlot).length;

/** Tenths of a second in which a monotonic time of ms lies, rounded up. */
export const tickOf = (ms: number): number => Math.ceil(ms / msPerTick);

/** The monotonic time of a tick, ms. */
export const msOf = (tick: number): number => tick * msPerTick;

/** Access to the shared memory, from the main thread or any other. */
export class Board {
  readonly memory: SharedArrayBuffer;
  readonly cells: Int32Array;
  readonly threads: number;
  readonly #rowsAt: number;
  readonly #slotsAt: number;

  constructor(memory: SharedArrayBuffer) {
    this.memory = memory;
    this.cells = new Int32Array(memory);
    this.threads = this.cells[common.threads] ?? 0;
    this.#rowsAt = cellsOfCacheLine * (1 + this.threads);
    this.#slotsAt = this.#rowsAt + this.threads * rowFigures * replicaSlots;
  }

  /** Fresh memory for so many threads, all zero. */
  static create(threads: number): Board {
    const cells = cellsOfCacheLine * (1 + threads) + (threads * rowFigures + slotFigures) * replicaSlots;
    const memory = new SharedArrayBuffer(cells * Int32Array.BYTES_PER_ELEMENT);
    new Int32Array(memory)[common.threads] = threads;
    return new Board(memory);
  }

  /** Where a figure of a thread is. */
  threadCell(figure: ThreadFigure, thread: number): number {
    return cellsOfCacheLine * (1 + thread) + ofThread[figure];
  }

  /** Where a figure of a replica in the row of a thread is. */
  rowCell(figure: RowFigure, thread: number, slot: number): number {
    return this.#rowsAt + (thread * rowFigures + ofRow[figure]) * replicaSlots + slot;
  }

  /** Where a figure of a replica is. */
  slotCell(figure: SlotFigure, slot: number): number {
    return this.#slotsAt + ofSlot[figure] * replicaSlots + slot;
  }

  /** The sum over all rows; `first` is the cell of thread 0. */
  sumOfRows(first: number): number {
    let sum = 0;
    for (let thread = 0, at = first; thread < this.threads; thread += 1, at += rowFigures * replicaSlots)
      sum += Atomics.load(this.cells, at);
    return sum;
  }

  /** The sum over all threads. */
  sumOfThreads(figure: ThreadFigure): number {
    let sum = 0;
    for (let thread = 0; thread < this.threads; thread += 1) sum += Atomics.load(this.cells, this.threadCell(figure, thread));
    return sum;
  }

  /** Counts the choices of replicas, and begins anew after 2^32. */
  get generation(): number {
    return Atomics.load(this.cells, common.generation);
  }

  /** Makes the next choice known; false when another thread made one since that generation, so that what was read is out of date. */
  advance(generation: number): boolean {
    return Atomics.compareExchange(this.cells, common.generation, generation, (generation + 1) | 0) === generation;
  }

  /** Until then, monotonic ms, some replica may be marked as one to be passed over. */
  get markedUntil(): number {
    return msOf(Atomics.load(this.cells, common.markedUntil));
  }

  /** A replica is marked until that time, monotonic ms. */
  raiseMark(until: number): void {
    const tick = tickOf(until);
    let known = Atomics.load(this.cells, common.markedUntil);
    while (known < tick) {
      const found = Atomics.compareExchange(this.cells, common.markedUntil, known, tick);
      if (found === known) return;
      known = found;
    }
  }

  /** The cells of the budget for retries. */
  get budget(): Int32Array {
    return this.cells.subarray(common.budget, common.budget + budgetCells);
  }

  /** Takes back what a thread that is gone had counted. */
  clearThread(thread: number): void {
    for (const figure of momentary) Atomics.store(this.cells, this.threadCell(figure, thread), 0);
    const from = this.rowCell('inFlight', thread, 0);
    this.cells.fill(0, from, from + rowFigures * replicaSlots);
  }

  /** Forgets what was known of the replica that had the slot. */
  clearSlot(slot: number): void {
    for (let figure = 0; figure < slotFigures; figure += 1) Atomics.store(this.cells, this.#slotsAt + figure * replicaSlots + slot, 0);
    for (let row = 0; row < this.threads * rowFigures; row += 1) Atomics.store(this.cells, this.#rowsAt + row * replicaSlots + slot, 0);
  }
}

/** Where a thread counts: the shared memory and which row is its own. */
export interface BoardRow {
  readonly board: Board;
  readonly thread: number;
}
