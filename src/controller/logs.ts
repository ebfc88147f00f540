import { open, type FileHandle } from 'node:fs/promises';
import type { Clock } from '../shared/clock.ts';
import { hasErrno } from '../shared/errors.ts';

/** Which part of a log to read. */
export interface LogRequest {
  /** In the order of writing; the last file grows. Following waits for missing files. */
  readonly files: readonly string[];
  /** Number of last lines, over all files together. */
  readonly tail: number | undefined;
  readonly follow: boolean;
  /** Whether the log is complete. Following then stops at the end. */
  ended(): Promise<boolean>;
}

const chunkBytes = 65_536;
const followPollMs = 200;

/** A log's bytes, plus appended bytes while following. */
export async function* readLogs(request: LogRequest, clock: Clock, signal: AbortSignal): AsyncGenerator<Buffer> {
  const first = await tailOffsets(request.files, request.tail);
  // Offsets by inode, not by name: rotation renames a full log, and its unread part must still be read.
  let offsets: ReadonlyMap<number, number> | undefined;
  for (;;) {
    // Checked before reading: then everything written up to the end is read.
    const ended = !request.follow || (await request.ended());
    const reached = new Map<number, number>();
    for (const [index, path] of request.files.entries()) {
      const file = await openIfExists(path);
      if (file === undefined) continue;
      try {
        const { ino, size } = await file.stat();
        const known = offsets === undefined ? (first[index] ?? 0) : (offsets.get(ino) ?? 0);
        // A file smaller than its read offset was truncated, or reuses the inode of a deleted file.
        reached.set(ino, await afterHole(file, known > size ? 0 : known, size));
        for await (const chunk of readFrom(file, reached.get(ino) ?? 0)) {
          reached.set(ino, (reached.get(ino) ?? 0) + chunk.length);
          yield chunk;
          if (signal.aborted) return;
        }
      } finally {
        await file.close();
      }
    }
    offsets = reached;
    if (ended || signal.aborted) return;
    await clock.sleep(followPollMs, signal);
  }
}

async function* readFrom(file: FileHandle, offset: number): AsyncGenerator<Buffer> {
  let position = offset;
  for (;;) {
    const { bytesRead, buffer } = await file.read(Buffer.allocUnsafe(chunkBytes), 0, chunkBytes, position);
    if (bytesRead === 0) return;
    position += bytesRead;
    yield buffer.subarray(0, bytesRead);
  }
}

const holeProbeBytes = 4_096;

/**
 * Start of a log's kept data, at or after `offset`. A log at its size limit has a hole in its older part, which reads
 * as zeros (`node/runner.sh`). The hole may be larger than the disk, hence the binary search.
 */
async function afterHole(file: FileHandle, offset: number, size: number): Promise<number> {
  if (!(await isHole(file, offset, size))) return offset;
  let [hole, kept] = [offset, size];
  while (kept - hole > holeProbeBytes) {
    const middle = Math.floor((hole + kept) / 2);
    if (await isHole(file, middle, size)) hole = middle;
    else kept = middle;
  }
  // The block at `kept` may hold the end of the hole and the first bytes after it.
  const length = kept + holeProbeBytes - hole;
  const { buffer, bytesRead } = await file.read(Buffer.alloc(length), 0, length, hole);
  const first = buffer.subarray(0, bytesRead).findIndex((byte) => byte !== 0);
  return first < 0 ? kept : hole + first;
}

async function isHole(file: FileHandle, offset: number, size: number): Promise<boolean> {
  const length = Math.min(holeProbeBytes, size - offset);
  if (length <= 0) return false;
  const { buffer, bytesRead } = await file.read(Buffer.alloc(length), 0, length, offset);
  return bytesRead > 0 && buffer.subarray(0, bytesRead).every((byte) => byte === 0);
}

async function openIfExists(path: string): Promise<FileHandle | undefined> {
  try {
    return await open(path, 'r');
  } catch (error) {
    if (hasErrno(error, 'ENOENT')) return undefined;
    throw error;
  }
}

/** Start offset in each file for the requested number of lines. */
async function tailOffsets(files: readonly string[], tail: number | undefined): Promise<number[]> {
  const offsets = files.map(() => 0);
  if (tail === undefined) return offsets;
  let missing = tail;
  for (let index = files.length - 1; index >= 0; index -= 1) {
    const { offset, lines } = await lastLinesFrom(files[index] ?? '', missing);
    offsets[index] = offset;
    missing -= lines;
  }
  return offsets;
}

const newline = 10;

/** Offset and number of the file's last `count` lines. */
async function lastLinesFrom(path: string, count: number): Promise<{ readonly offset: number; readonly lines: number }> {
  const file = await openIfExists(path);
  if (file === undefined) return { offset: 0, lines: 0 };
  try {
    const { size } = await file.stat();
    if (count <= 0) return { offset: size, lines: 0 };
    let lines = 0;
    let end = size;
    while (end > 0) {
      const start = Math.max(0, end - chunkBytes);
      const { buffer } = await file.read(Buffer.allocUnsafe(end - start), 0, end - start, start);
      for (let at = end - start - 1; at >= 0; at -= 1) {
        // The newline at the end of the file ends the last line and begins no new one.
        if (buffer[at] !== newline || start + at === size - 1) continue;
        lines += 1;
        if (lines === count) return { offset: start + at + 1, lines };
      }
      // Everything before this block is a hole.
      if (await isHole(file, start, end)) return { offset: await afterHole(file, start, size), lines: lines + 1 };
      end = start;
    }
    return { offset: 0, lines: size > 0 ? lines + 1 : 0 };
  } finally {
    await file.close();
  }
}
