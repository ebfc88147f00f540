import type { RequestCounters } from '../exchange/balancer-context.ts';
import type { BoardRow } from './board.ts';

/** The counters of a thread in the shared memory, where the main thread reads them. They begin anew after 2^32. */
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
