import { codeLabels, connectFailures, refusedConnections, refusedForFiles, rejectReasons, retryReasons } from './label-values.ts';
import { blockOf, noSlot, replicaBlock, replicaCells, threadCells, threadCellSizes, type ThreadCell } from './row-layout.ts';
import type { Samples } from './samples.ts';
import { SlotBlocks } from './slot-blocks.ts';

const plainCells = [
  'attempts',
  'clientGone',
  'truncated',
  'received',
  'sent',
  'clientConnectionsOpened',
  'replicaConnections',
  'replicaConnectionsOpened',
  'tlsHandshakes',
  'tlsFailures',
  'logLinesLost',
] as const satisfies readonly ThreadCell[];

/** Cells with one count for each reason of a list. */
type ReasonCell = 'retries' | 'connectFailures' | 'refusedConnections' | 'rejected';

const labelOfNone = 'none';

/** Adds up the rows of all threads; the counterpart of `ThreadMetrics` on the main thread. */
export class MetricsReader {
  readonly #rows: readonly Float64Array[];
  readonly #replicas: SlotBlocks;

  constructor(rows: readonly Float64Array[]) {
    this.#rows = rows;
    this.#replicas = new SlotBlocks(rows, blockOf, replicaBlock);
  }

  /**
   * From now on the slot counts for that replica, from 0. Until this call it exposes the previous replica's values, so
   * none are lost between two scrapes.
   */
  assign(slot: number, replicaId: number): void {
    this.#replicas.assign(slot, replicaId);
  }

  read(samples: Samples): void {
    for (const cell of plainCells) samples.add(cell, this.#total(threadCells[cell]));
    this.#addReasons(samples, 'retries', retryReasons, true);
    this.#addReasons(samples, 'connectFailures', connectFailures, true);
    const refused = this.#sum(threadCells.refusedForFiles, refusedForFiles.length);
    for (const [index, kind] of refusedForFiles.entries()) samples.add('refusedForFiles', refused[index] ?? 0, { kind });
    this.#addReasons(samples, 'refusedConnections', refusedConnections, true);
    this.#addReasons(samples, 'rejected', rejectReasons, false);
    for (const cell of ['duration', 'firstByte', 'queueWait'] as const) {
      const cells = this.#sum(threadCells[cell], threadCellSizes[cell]);
      samples.addDistribution(cell, cells.slice(0, -1), cells.at(-1) ?? 0);
    }
    this.#addThreads(samples);
    this.#addReplicas(samples);
  }

  #addReasons(samples: Samples, cell: ReasonCell, reasons: readonly string[], withZeros: boolean): void {
    const counts = this.#sum(threadCells[cell], reasons.length);
    for (const [index, reason] of reasons.entries()) {
      const count = counts[index] ?? 0;
      if (withZeros || count > 0) samples.add(cell, count, { reason });
    }
  }

  #addThreads(samples: Samples): void {
    for (const [index, row] of this.#rows.entries()) {
      const thread = String(index);
      samples.add('threadBusy', row[threadCells.threadBusy] ?? 0, { thread });
      samples.add('threadCpu', row[threadCells.threadCpu] ?? 0, { thread });
      const at = threadCells.threadDelay;
      const cells = [...row.subarray(at, at + threadCellSizes.threadDelay)];
      samples.addDistribution('threadDelay', cells.slice(0, -1), cells.at(-1) ?? 0, { thread });
    }
  }

  #addReplicas(samples: Samples): void {
    addRequests(samples, labelOfNone, this.#replicas.sum(noSlot));
    for (const [replicaId, cells] of this.#replicas.byReplica()) {
      const replica = String(replicaId);
      addRequests(samples, replica, cells);
      samples.add('ejections', cells[replicaCells.ejections] ?? 0, { replica });
      const sum = cells[replicaCells.firstByteSum] ?? 0;
      samples.addDistribution('replicaFirstByte', [cells[replicaCells.firstByteCount] ?? 0], sum, { replica });
    }
  }

  #total(at: number): number {
    return this.#rows.reduce((total, row) => total + (row[at] ?? 0), 0);
  }

  #sum(at: number, length: number): readonly number[] {
    return Array.from({ length }, (_, index) => this.#total(at + index));
  }
}

function addRequests(samples: Samples, replica: string, cells: readonly number[]): void {
  for (const [index, code] of codeLabels.entries()) {
    const count = cells[replicaCells.requests + index] ?? 0;
    if (count > 0) samples.add('requests', count, { code, replica });
  }
}
