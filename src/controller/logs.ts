import { open, type FileHandle } from 'node:fs/promises';
import type { Clock } from '../shared/clock.ts';
import { hasErrno } from '../shared/errors.ts';

/** What of a log is wanted. */
export interface LogRequest {
  /** Files in the order in which they were written; the last one grows. Missing ones are waited for when following. */
  readonly files: readonly string[];
  /** Only the last lines, over all files together. */
  readonly tail: number | undefined;
  readonly follow: boolean;
  /** Following ends when nothing will be written any more and the end was reached. */
  ended(): Promise<boolean>;
}

const chunkBytes = 65_536;
const followPollMs = 200;

/** A log's bytes, and what is added while following. */
export async function* readLogs(request: LogRequest, clock: Clock, signal: AbortSignal): AsyncGenerator<Buffer> {
  const first = await tailOffsets(request.files, request.tail);
  // By the file rather than by its name: a full log is moved to another name, and what was not read of it is read on there.
  let offsets: ReadonlyMap<number, number> | undefined;
  for (;;) {
    // Asked before reading: what was written up to the end is then surely read.
    const ended = !request.follow || (await request.ended());
    const reached = new Map<number, number>();
    for (const [index, path] of request.files.entries()) {
      const file = await openIfThere(path);
      if (file === undefined) continue;
      try {
        const { ino, size } = await file.stat();
        const known = offsets === undefined ? (first[index] ?? 0) : (offsets.get(ino) ?? 0);
        // A file that was cut, or began anew under the number of one that is gone, is shorter than what was read.
        reached.set(ino, known > size ? 0 : known);
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

async function openIfThere(path: string): Promise<FileHandle | undefined> {
  try {
    return await open(path, 'r');
  } catch (error) {
    if (hasErrno(error, 'ENOENT')) return undefined;
    throw error;
  }
}

/** Where to begin in each file so that about the wanted number of lines is read; exact, found by going backwards over the files. */
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

/** The offset from which the file's last `wanted` lines begin, and how many there are. */
async function lastLinesFrom(path: string, wanted: number): Promise<{ readonly offset: number; readonly lines: number }> {
  const file = await openIfThere(path);
  if (file === undefined) return { offset: 0, lines: 0 };
  try {
    const { size } = await file.stat();
    if (wanted <= 0) return { offset: size, lines: 0 };
    let lines = 0;
    let end = size;
    while (end > 0) {
      const start = Math.max(0, end - chunkBytes);
      const { buffer } = await file.read(Buffer.allocUnsafe(end - start), 0, end - start, start);
      for (let at = end - start - 1; at >= 0; at -= 1) {
        // The newline that ends the file ends its last line and begins none.
        if (buffer[at] !== newline || start + at === size - 1) continue;
        lines += 1;
        if (lines === wanted) return { offset: start + at + 1, lines };
      }
      end = start;
    }
    return { offset: 0, lines: size > 0 ? lines + 1 : 0 };
  } finally {
    await file.close();
  }
}
