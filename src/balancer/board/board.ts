/**
 * The memory that the threads of one balancer share, as 32-bit integers.
 *
 * Only a thread itself writes its row of current values (connections, queued requests, requests in flight). So zeroing
 * the row undoes a dead thread's counts without any lock. Each replica's own state is stored once, in its slot.
 */

/** The most replicas at once, including removed ones that still finish requests. */
export const replicaSlots = 2_048;

/** Ticks since the machine started: 32 bits last for 6.8 years. */
const msPerTick = 100;

/** 64 bytes: threads that write in parallel must not write to the same cache line. */
const cellsOfCacheLine = 16;

const common = { generation: 0, threads: 1, markedUntil: 2, budget: 3, shortages: 5, turns: 6, roomsMade: 7, usualMs: 8 } as const;
const budgetCells = 2;

const ofThread = {
  requests: 0,
  errors: 1,
  connections: 2,
  queued: 3,
  queuedKibibytes: 4,
  extraRequests: 5,
  replicaFiles: 6,
  waitsForRoom: 7,
} as const;

/** A value of one thread. `requests` and `errors` wrap around at 2^32. */
export type ThreadFigure = keyof typeof ofThread;

/** Void for a dead thread. */
const gauges: readonly ThreadFigure[] = ['connections', 'queued', 'queuedKibibytes', 'extraRequests', 'replicaFiles', 'waitsForRoom'];

const ofRow = { inFlight: 0, unanswered: 1, waitingSince: 2, lastSeenAt: 3, answers: 4, answerMs: 5 } as const;

/**
 * What a thread counts per replica.
 *
 * `inFlight`: attempts. `unanswered`: requests sent without a byte of response so far. `waitingSince`: tick of the
 * first of them. `lastSeenAt`: tick of the replica's last byte. `answers`: first bytes so far; wraps around at 2^32.
 * `answerMs`: their usual recent delay.
 */
type RowFigure = keyof typeof ofRow;
const rowFigures = Object.keys(ofRow).length;

const ofSlot = {
  lastChoice: 0,
  failures: 1,
  failedAt: 2,
  ejections: 3,
  ejectedUntil: 4,
  avoidedUntil: 5,
  isStalled: 6,
  isGivenUp: 7,
  hung: 8,
  cutOff: 9,
  brokenSince: 10,
  brokenAt: 11,
  allHung: 12,
} as const;

type SlotFigure = keyof typeof ofSlot;
const slotFigures = Object.keys(ofSlot).length;

/** Converts a monotonic time in ms to a tick of a tenth of a second, rounded up. */
export const tickOf = (ms: number): number => Math.ceil(ms / msPerTick);

/** The monotonic time of a tick, ms. */
export const msOf = (tick: number): number => tick * msPerTick;

/** Access to the shared memory, from any thread. */
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

  static create(threads: number): Board {
    const cells = cellsOfCacheLine * (1 + threads) + (threads * rowFigures + slotFigures) * replicaSlots;
    const memory = new SharedArrayBuffer(cells * Int32Array.BYTES_PER_ELEMENT);
    new Int32Array(memory)[common.threads] = threads;
    return new Board(memory);
  }

  threadCell(figure: ThreadFigure, thread: number): number {
    return cellsOfCacheLine * (1 + thread) + ofThread[figure];
  }

  rowCell(figure: RowFigure, thread: number, slot: number): number {
    return this.#rowsAt + (thread * rowFigures + ofRow[figure]) * replicaSlots + slot;
  }

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

  /** The highest value of all rows; `first` is the cell of thread 0. */
  highestOfRows(first: number): number {
    let highest = 0;
    for (let thread = 0, at = first; thread < this.threads; thread += 1, at += rowFigures * replicaSlots)
      highest = Math.max(highest, Atomics.load(this.cells, at));
    return highest;
  }

  sumOfThreads(figure: ThreadFigure): number {
    let sum = 0;
    for (let thread = 0; thread < this.threads; thread += 1) sum += Atomics.load(this.cells, this.threadCell(figure, thread));
    return sum;
  }

  /** The number of replica choices so far; wraps around at 2^32. */
  get generation(): number {
    return Atomics.load(this.cells, common.generation);
  }

  /** Publishes the next choice. False when another thread chose since `generation`: the counts read are out of date. */
  advance(generation: number): boolean {
    return Atomics.compareExchange(this.cells, common.generation, generation, (generation + 1) | 0) === generation;
  }

  /** The number of this turn among all requests that are split between versions; wraps around at 2^32. */
  takeTurn(): number {
    return Atomics.add(this.cells, common.turns, 1);
  }

  /** Until this monotonic time, ms, some replica may have to be passed over. */
  get markedUntil(): number {
    return msOf(Atomics.load(this.cells, common.markedUntil));
  }

  raiseMark(until: number): void {
    const tick = tickOf(until);
    let known = Atomics.load(this.cells, common.markedUntil);
    while (known < tick) {
      const found = Atomics.compareExchange(this.cells, common.markedUntil, known, tick);
      if (found === known) return;
      known = found;
    }
  }

  /** The usual time from a request to the first byte at the slowest replica, ms; 0 while unknown. */
  get usualMs(): number {
    return Atomics.load(this.cells, common.usualMs);
  }

  set usualMs(ms: number) {
    Atomics.store(this.cells, common.usualMs, ms);
  }

  /** How often a thread lacked open files and had no idle connection to close; wraps around at 2^32. */
  get shortages(): number {
    return Atomics.load(this.cells, common.shortages);
  }

  /** Makes all threads close their idle connections. */
  recordShortage(): void {
    Atomics.add(this.cells, common.shortages, 1);
  }

  /** How often an attempt ended while some thread waited for room at a replica; wraps around at 2^32. */
  get roomsMade(): number {
    return Atomics.load(this.cells, common.roomsMade);
  }

  get roomCell(): number {
    return common.roomsMade;
  }

  /** Call it after an attempt was uncounted. Wakes one thread if any waits; see `RoomSignal`. */
  makeRoom(): void {
    if (this.sumOfThreads('waitsForRoom') === 0) return;
    Atomics.add(this.cells, common.roomsMade, 1);
    Atomics.notify(this.cells, common.roomsMade, 1);
  }

  get budget(): Int32Array {
    return this.cells.subarray(common.budget, common.budget + budgetCells);
  }

  clearThread(thread: number): void {
    for (const figure of gauges) Atomics.store(this.cells, this.threadCell(figure, thread), 0);
    const from = this.rowCell('inFlight', thread, 0);
    this.cells.fill(0, from, from + rowFigures * replicaSlots);
  }

  clearSlot(slot: number): void {
    for (let figure = 0; figure < slotFigures; figure += 1) Atomics.store(this.cells, this.#slotsAt + figure * replicaSlots + slot, 0);
    for (let row = 0; row < this.threads * rowFigures; row += 1) Atomics.store(this.cells, this.#rowsAt + row * replicaSlots + slot, 0);
  }
}

/** Where a thread counts: the shared memory and the index of its own row. */
export interface BoardRow {
  readonly board: Board;
  readonly thread: number;
}
