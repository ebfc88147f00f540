import { firstByteLimitsMs, waitLimitsMs } from '../../domain/outcomes.ts';
import { replicaSlots } from '../board/board.ts';
import { delayBounds, durationBounds } from './metric-table.ts';
import { codeLabels, connectFailures, refusedConnections, refusedForFiles, rejectReasons, retryReasons } from './label-values.ts';

/**
 * A thread's row: the values of the whole thread, a block for each replica slot, then one for the outcomes of each. Only
 * the thread writes it, and the main thread reads all rows, so no write waits. Processors write each number (8 bytes, aligned) as a whole.
 */

/** Cells of a histogram: its buckets with the infinite one, and the sum. */
const cellsOf = (bounds: readonly number[]): number => bounds.length + 2;

const sizes = {
  attempts: 1,
  clientGone: 1,
  truncated: 1,
  received: 1,
  sent: 1,
  clientConnectionsOpened: 1,
  replicaConnections: 1,
  replicaConnectionsOpened: 1,
  tlsHandshakes: 1,
  tlsFailures: 1,
  logLinesLost: 1,
  threadBusy: 1,
  threadCpu: 1,
  retries: retryReasons.length,
  connectFailures: connectFailures.length,
  refusedForFiles: refusedForFiles.length,
  refusedConnections: refusedConnections.length,
  rejected: rejectReasons.length,
  duration: cellsOf(durationBounds),
  firstByte: cellsOf(durationBounds),
  queueWait: cellsOf(durationBounds),
  threadDelay: cellsOf(delayBounds),
} as const;

/** Values of a thread that belong to no replica. */
export type ThreadCell = keyof typeof sizes;

/** How many cells each takes. */
export const threadCellSizes: Readonly<Record<ThreadCell, number>> = sizes;

const isCell = (name: string): name is ThreadCell => Object.hasOwn(sizes, name);

const layout = layOut(Object.keys(sizes).filter(isCell));

/** The index of the first cell of each. */
export const threadCells: Readonly<Record<ThreadCell, number>> = layout.at;

/** Current values rather than counts: void when their thread dies. */
export const gaugeCells = ['replicaConnections'] as const satisfies readonly ThreadCell[];

/** The layout of a replica's block; its requests by code come first. */
export const replicaCells = {
  requests: 0,
  ejections: codeLabels.length,
  firstByteSum: codeLabels.length + 1,
  firstByteCount: codeLabels.length + 2,
} as const;

/** Number of cells of a replica's block. */
export const replicaBlock: number = codeLabels.length + 3;

/** The start of a slot's block. `noSlot` has the first block: requests for which no replica was chosen. */
export function blockOf(slot: number): number {
  return layout.length + (slot + 1) * replicaBlock;
}

/** Replaces a slot number: no replica. */
export const noSlot = -1;

const firstByteBuckets = firstByteLimitsMs.length + 1;

/** The layout of a slot's outcomes; see `domain/outcomes.ts`. The waits come last. */
export const outcomeCells = { responses: 0, errors: 1, firstByteCounts: 2, waitCounts: 2 + firstByteBuckets } as const;

/** Number of cells of a slot's outcomes. */
export const outcomeBlock: number = 2 + firstByteBuckets + waitLimitsMs.length;

/** The start of a slot's outcomes. */
export function outcomesOf(slot: number): number {
  return blockOf(replicaSlots) + slot * outcomeBlock;
}

const rowLength = outcomesOf(replicaSlots);
const rowBytes = rowLength * Float64Array.BYTES_PER_ELEMENT;

/** Memory for the rows of that many threads, all 0. The system allocates pages on first write. */
export function createMetricsMemory(threads: number): SharedArrayBuffer {
  return new SharedArrayBuffer(threads * rowBytes);
}

/** The row of one thread. */
export function metricsRow(memory: SharedArrayBuffer, thread: number): Float64Array {
  return new Float64Array(memory, thread * rowBytes, rowLength);
}

/** The rows of all threads. */
export function metricsRows(memory: SharedArrayBuffer): readonly Float64Array[] {
  return Array.from({ length: memory.byteLength / rowBytes }, (_, thread) => metricsRow(memory, thread));
}

function layOut(cells: readonly ThreadCell[]): { readonly at: Readonly<Record<ThreadCell, number>>; readonly length: number } {
  const at: Record<ThreadCell, number> = { ...sizes };
  let length = 0;
  for (const cell of cells) {
    at[cell] = length;
    length += sizes[cell];
  }
  return { at, length };
}
