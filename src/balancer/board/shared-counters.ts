import type { RequestCounters } from '../exchange/balancer-context.ts';
import type { Board, BoardRow, ThreadFigure } from './board.ts';
import type { QueueTally } from '../exchange/request-queue.ts';

/** The counters of a thread in the shared memory, read by the main thread. They wrap around at 2^32. */
export class SharedCounters implements RequestCounters {
  isDraining = false;
  readonly #cells: Int32Array;
  readonly #requests: number;
  readonly #errors: number;

  constructor({ board, thread }: BoardRow) {
    this.#cells = board.cells;
    this.#requests = board.threadCell('requests', thread);
    this.#errors = board.threadCell('errors', thread);
  }

  get requests(): number {
    return this.#cells[this.#requests] ?? 0;
  }

  set requests(count: number) {
    this.#cells[this.#requests] = count;
  }

  get errors(): number {
    return this.#cells[this.#errors] ?? 0;
  }

  set errors(count: number) {
    this.#cells[this.#errors] = count;
  }
}

const bytesPerKibibyte = 1_024;

/** The size of the request queue, in the shared memory. Bytes are kept in KiB, rounded up, to fit into 32 bits. */
export class SharedQueueTally implements QueueTally {
  readonly #row: BoardRow;
  readonly #requests: number;
  readonly #kibibytes: number;

  constructor(row: BoardRow) {
    this.#row = row;
    this.#requests = row.board.threadCell('queued', row.thread);
    this.#kibibytes = row.board.threadCell('queuedKibibytes', row.thread);
  }

  set(requests: number, bytes: number): void {
    Atomics.store(this.#row.board.cells, this.#requests, requests);
    Atomics.store(this.#row.board.cells, this.#kibibytes, Math.ceil(bytes / bytesPerKibibyte));
  }

  get requests(): number {
    return this.#row.board.sumOfThreads('queued');
  }

  get bytes(): number {
    return this.#row.board.sumOfThreads('queuedKibibytes') * bytesPerKibibyte;
  }
}

/** Adds up the threads' counters, which wrap around at 2^32: the caller must read far more often. */
export class TrafficTotals {
  readonly #board: Board;
  readonly #seen = new Map<number, number>();
  #requests = 0;
  #errors = 0;

  constructor(board: Board) {
    this.#board = board;
  }

  /** Requests and errors since the memory was allocated, including those of dead threads. */
  read(): { readonly requests: number; readonly errors: number } {
    for (let thread = 0; thread < this.#board.threads; thread += 1) {
      this.#requests += this.#news('requests', thread);
      this.#errors += this.#news('errors', thread);
    }
    return { requests: this.#requests, errors: this.#errors };
  }

  #news(figure: ThreadFigure, thread: number): number {
    const cell = this.#board.threadCell(figure, thread);
    const now = Atomics.load(this.#board.cells, cell);
    const before = this.#seen.get(cell) ?? 0;
    this.#seen.set(cell, now);
    return (now - before) >>> 0;
  }
}
