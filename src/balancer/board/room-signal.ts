import type { BoardRow } from './board.ts';

/**
 * Wakes threads whose requests wait because each replica has as many requests as it may have. Each room made wakes one
 * thread, the one that has waited longest, so no thread's requests starve.
 */
export class RoomSignal {
  readonly #row: BoardRow;
  readonly #isWaiting: number;
  /** Rooms made when this thread announced that it will wait. */
  #seen: number | undefined;
  #isAwaited = false;

  constructor(row: BoardRow) {
    this.#row = row;
    this.#isWaiting = row.board.threadCell('waitsForRoom', row.thread);
  }

  /** A call of `next` has not resolved. */
  get isAwaited(): boolean {
    return this.#isAwaited;
  }

  /** Must precede the last read of the counts: an attempt that ends after it then wakes this thread. */
  announce(): void {
    Atomics.store(this.#row.board.cells, this.#isWaiting, 1);
    this.#seen = this.#row.board.roomsMade;
  }

  /** No request of this thread waits for room. */
  withdraw(): void {
    Atomics.store(this.#row.board.cells, this.#isWaiting, 0);
  }

  /** As `withdraw`, unless earlier requests wait: the last read found room. */
  settle(): void {
    if (!this.#isAwaited) this.withdraw();
  }

  /** Wakes the next thread: room was made, or this thread has no use for the room that woke it. */
  passOn(): void {
    this.#row.board.makeRoom();
  }

  /** Resolves once room was made after `announce`. */
  async next(): Promise<void> {
    this.#isAwaited = true;
    const { board } = this.#row;
    const { value } = Atomics.waitAsync(board.cells, board.roomCell, this.#seen ?? board.roomsMade);
    this.#seen = undefined;
    await value;
    this.#isAwaited = false;
  }
}
