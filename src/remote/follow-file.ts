import { open, type FileHandle } from 'node:fs/promises';
import type { Clock } from '../shared/clock.ts';
import { hasErrno } from '../shared/errors.ts';

const chunkBytes = 65_536;

/** How soon what was appended is noticed. Asking an open file costs microseconds, and works on every file system. */
const pollMs = 100;

/** The bytes of a growing file from `offset` on, exactly, until the signal aborts; waits for the file to appear. */
export async function* followFile(path: string, offset: number, clock: Clock, signal: AbortSignal): AsyncGenerator<Buffer> {
  const file = await openWhenThere(path, clock, signal);
  if (file === undefined) return;
  try {
    let position = offset;
    while (!signal.aborted) {
      const { bytesRead, buffer } = await file.read(Buffer.allocUnsafe(chunkBytes), 0, chunkBytes, position);
      if (bytesRead === 0) {
        await clock.sleep(pollMs, signal);
        continue;
      }
      position += bytesRead;
      yield buffer.subarray(0, bytesRead);
    }
  } finally {
    await file.close();
  }
}

async function openWhenThere(path: string, clock: Clock, signal: AbortSignal): Promise<FileHandle | undefined> {
  while (!signal.aborted) {
    try {
      return await open(path, 'r');
    } catch (error) {
      if (!hasErrno(error, 'ENOENT', 'ENOTDIR')) throw error;
    }
    await clock.sleep(pollMs, signal);
  }
  return undefined;
}
