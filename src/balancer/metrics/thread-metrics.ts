import { firstByteLimitsMs } from '../../domain/outcomes.ts';
import type { AccessRecord } from '../access-log/access-record.ts';
import { bucketOf, delayBounds, durationBounds } from './metric-table.ts';
import {
  codeIndexOf,
  connectFailures,
  refusedConnections,
  refusedForFiles,
  rejectIndexOf,
  retryReasons,
  type ConnectFailure,
  type RefusedConnection,
  type RefusedForFiles,
  type RetryReason,
} from './label-values.ts';
import {
  blockOf,
  gaugeCells,
  noSlot,
  outcomeCells,
  outcomesOf,
  replicaCells,
  threadCells,
  threadCellSizes,
  type ThreadCell,
} from './row-layout.ts';

const msPerSecond = 1_000;

/** The counts of one thread, in its row; see `row-layout.ts`. A call is a few writes to memory, without allocation. */
export class ThreadMetrics {
  readonly #row: Float64Array;

  /** Continues in a row that an earlier thread left: its counts stay, as counters never decrease. */
  constructor(row: Float64Array) {
    this.#row = row;
    for (const cell of gaugeCells) row[threadCells[cell]] = 0;
  }

  /** With any outcome. */
  requestEnded(record: AccessRecord): void {
    const { replica, status, outcome, code, firstByteMs, queuedMs, attempts } = record;
    const block = blockOf(replica?.slot ?? noSlot);
    this.#add(block + replicaCells.requests + codeIndexOf(status), 1);
    this.#add(threadCells.attempts, attempts);
    this.#add(threadCells.received, record.bytesIn);
    this.#add(threadCells.sent, record.bytesOut);
    if (record.protocol !== 'ws') this.#observe('duration', record.totalMs / msPerSecond, durationBounds);
    if (firstByteMs !== undefined) {
      this.#observe('firstByte', firstByteMs / msPerSecond, durationBounds);
      this.#add(block + replicaCells.firstByteSum, (firstByteMs - (record.sentMs ?? 0)) / msPerSecond);
      this.#add(block + replicaCells.firstByteCount, 1);
    }
    if (queuedMs > 0) this.#observe('queueWait', queuedMs / msPerSecond, durationBounds);
    if (outcome === 'client_gone') this.#add(threadCells.clientGone, 1);
    else if (outcome === 'truncated') this.#add(threadCells.truncated, 1);
    else if (outcome !== 'ok' && code !== undefined) this.#add(threadCells.rejected + rejectIndexOf(code), 1);
  }

  /** An attempt failed and another one follows. */
  retry(reason: RetryReason): void {
    this.#add(threadCells.retries + retryReasons.indexOf(reason), 1);
  }

  connectFailed(why: ConnectFailure): void {
    this.#add(threadCells.connectFailures + connectFailures.indexOf(why), 1);
  }

  refusedForFiles(what: RefusedForFiles): void {
    this.#add(threadCells.refusedForFiles + refusedForFiles.indexOf(what), 1);
  }

  connectionRefused(why: RefusedConnection): void {
    this.#add(threadCells.refusedConnections + refusedConnections.indexOf(why), 1);
  }

  ejected(slot: number): void {
    this.#add(blockOf(slot) + replicaCells.ejections, 1);
  }

  /** An attempt is without a first byte at the age `waitLimitsMs[limit]`. */
  waited(slot: number, limit: number): void {
    this.#add(outcomesOf(slot) + outcomeCells.waitCounts + limit, 1);
  }

  /** A replica replied. `ms`: from the sending of the request to the first byte. */
  replied(slot: number, ms: number): void {
    const block = outcomesOf(slot);
    this.#add(block + outcomeCells.responses, 1);
    this.#add(block + outcomeCells.firstByteCounts + bucketOf(ms, firstByteLimitsMs), 1);
  }

  /** An attempt is an error of its replica. `hasReplied`: it was counted by `replied` already. */
  erred(slot: number, hasReplied: boolean): void {
    const block = outcomesOf(slot);
    if (!hasReplied) this.#add(block + outcomeCells.responses, 1);
    this.#add(block + outcomeCells.errors, 1);
  }

  connectionOpened(): void {
    this.#add(threadCells.clientConnectionsOpened, 1);
  }

  /** A connection to a replica was made; each call is followed by one of `replicaConnectionClosed`. */
  replicaConnectionOpened(): void {
    this.#add(threadCells.replicaConnections, 1);
    this.#add(threadCells.replicaConnectionsOpened, 1);
  }

  replicaConnectionClosed(): void {
    this.#add(threadCells.replicaConnections, -1);
  }

  tlsHandshake(isOk: boolean): void {
    this.#add(isOk ? threadCells.tlsHandshakes : threadCells.tlsFailures, 1);
  }

  logLinesLost(lines: number): void {
    this.#add(threadCells.logLinesLost, lines);
  }

  /** `delay`: s that a timer of the thread was late. */
  timerFired(delay: number): void {
    this.#observe('threadDelay', delay, delayBounds);
  }

  /** The thread's usage since the last call, s: time in which it was not idle, and processor time. */
  used(busy: number, cpu: number): void {
    this.#add(threadCells.threadBusy, busy);
    this.#add(threadCells.threadCpu, cpu);
  }

  #observe(cell: ThreadCell, value: number, bounds: readonly number[]): void {
    const at = threadCells[cell];
    this.#add(at + bucketOf(value, bounds), 1);
    this.#add(at + threadCellSizes[cell] - 1, value);
  }

  #add(index: number, amount: number): void {
    this.#row[index] = (this.#row[index] ?? 0) + amount;
  }
}
