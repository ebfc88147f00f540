import type { Deadlines, Timed } from '../transport/deadlines.ts';
import type { BoardRow } from './board.ts';

/** What the limit of open files leaves for traffic, over all threads. */
export interface FileLimits {
  /** Maximum of connections to clients and to replicas together. */
  readonly files: number;
  readonly connections: number;
}

/** At most one of this many files is for extra requests; see `FileBudget`. */
const extraPart = 4;
/** Files over the limit until another thread closes idle connections. `fileLimits` reserves more for each thread. */
const overshoot = 16;

/**
 * Keeps connections within the limit of open files, over all threads.
 *
 * A client connection uses two files: its own, and one to a replica. Each further parallel request (HTTP/2) is an
 * *extra* request and needs one more file.
 *
 * A connection may have as many extra requests as stay free for others: one connection gets half of them, four get a
 * fifth each. The rest stays free for the next client. Requests over that share wait. In a thread as many may wait
 * as there may be extra requests, shared by connections in the same way.
 *
 * A thread closes idle replica connections when their files are needed.
 */
export class FileBudget implements Timed {
  /** Always in the past: `onDeadline` runs in each sweep. */
  readonly deadlineAt = Number.NEGATIVE_INFINITY;
  /** Closes one idle replica connection of this thread; false when there is none. */
  closeIdle: () => boolean = () => false;
  readonly #row: BoardRow;
  readonly #limits: FileLimits;
  readonly #maxExtra: number;
  readonly #connectionsCell: number;
  readonly #extraCell: number;
  readonly #replicaCell: number;
  #shortagesSeen: number;
  #waiting = 0;

  constructor(row: BoardRow, limits: FileLimits, deadlines: Deadlines) {
    const { board, thread } = row;
    this.#row = row;
    this.#limits = limits;
    this.#maxExtra = Math.floor(limits.files / extraPart);
    this.#connectionsCell = board.threadCell('connections', thread);
    this.#extraCell = board.threadCell('extraRequests', thread);
    this.#replicaCell = board.threadCell('replicaFiles', thread);
    this.#shortagesSeen = board.shortages;
    deadlines.add(this);
  }

  // ---- Clients

  /** Whether there is room for another client and its first request. */
  get hasRoomForClient(): boolean {
    const connections = this.#sum('connections');
    return connections < this.#limits.connections && 2 * (connections + 1) + this.#sum('extraRequests') <= this.#limits.files;
  }

  /** Sets this thread's number of client connections. Beyond the limit of files, closes an idle replica connection. */
  setClients(count: number): void {
    Atomics.store(this.#row.board.cells, this.#connectionsCell, count);
    if (this.#open > this.#limits.files) this.#makeRoom();
  }

  /** Takes the file of a further request on a connection with `open` requests. False when its share is used up. */
  openRequest(open: number): boolean {
    if (open === 0) return true;
    if (open > this.#freeExtra) return false;
    Atomics.add(this.#row.board.cells, this.#extraCell, 1);
    return true;
  }

  /** A request ended on a connection that still has `open` requests. */
  closeRequest(open: number): void {
    if (open > 0) Atomics.sub(this.#row.board.cells, this.#extraCell, 1);
  }

  /** A request over its connection's share waits; `own`: those of the connection that wait. False when they are too many. */
  beginWait(own: number): boolean {
    if (own >= this.#maxExtra - this.#waiting) return false;
    this.#waiting += 1;
    return true;
  }

  endWait(): void {
    this.#waiting -= 1;
  }

  // ---- Replicas

  /** Takes the file of a replica connection. False when this thread has none to close and `overshoot` is used up. */
  openReplicaConnection(): boolean {
    const { files } = this.#limits;
    if (this.#open + 1 > files && !this.#makeRoom() && this.#open + 1 > files + overshoot) return false;
    Atomics.add(this.#row.board.cells, this.#replicaCell, 1);
    return true;
  }

  closeReplicaConnection(): void {
    Atomics.sub(this.#row.board.cells, this.#replicaCell, 1);
  }

  /** Closes all idle replica connections of this thread after any thread was short of files. */
  onDeadline(): void {
    const { shortages } = this.#row.board;
    if (shortages === this.#shortagesSeen) return;
    this.#shortagesSeen = shortages;
    while (this.closeIdle());
  }

  #makeRoom(): boolean {
    if (this.closeIdle()) return true;
    this.#row.board.recordShortage();
    return false;
  }

  get #open(): number {
    return this.#sum('connections') + this.#sum('replicaFiles');
  }

  get #freeExtra(): number {
    const extra = this.#sum('extraRequests');
    return Math.min(this.#maxExtra, this.#limits.files - 2 * this.#sum('connections')) - extra;
  }

  #sum(figure: 'connections' | 'extraRequests' | 'replicaFiles'): number {
    return this.#row.board.sumOfThreads(figure);
  }
}
