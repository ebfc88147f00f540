import type { BoardRow } from './board.ts';
import type { QueueTally } from '../exchange/waiting-room.ts';

const bytesPerKibibyte = 1_024;

/** What waits for a replica, in the shared memory: in 32 bits, so that bytes are kept in KiB, rounded up for each thread. */
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
