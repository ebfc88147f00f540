import type { Board, ThreadFigure } from './board.ts';

/** Adds up what threads count in 32 bits, which begin anew after 2^32. To be read far more often than that many requests take. */
export class TrafficTotals {
  readonly #board: Board;
  readonly #seen = new Map<number, number>();
  #requests = 0;
  #errors = 0;

  constructor(board: Board) {
    this.#board = board;
  }

  /** Requests and errors since the memory was made, also those of threads that are gone. */
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
