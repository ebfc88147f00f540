import { closeSync, linkSync, mkdirSync, openSync, readSync, statSync } from 'node:fs';
import { appendFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import type { Remote } from '../../remote/remote.ts';
import { hasErrno } from '../../shared/errors.ts';

/** The one job of a replica's machine. */
export const jobName = 'main';

/**
 * Makes the program's output stay readable here after its machine is gone: on this machine by a second name for the same file, which costs
 * nothing; from elsewhere by following it until the signal aborts, going on where an earlier process stopped.
 */
export async function keepLog(remote: Remote, source: string, target: string, signal: AbortSignal): Promise<void> {
  const local = remote.localPath(source);
  mkdirSync(dirname(target), { recursive: true, mode: 0o700 });
  if (local !== undefined) {
    try {
      linkSync(local, target);
    } catch (error) {
      // It was linked before a restart, or setup has not written yet and the file is linked at the end.
      if (!hasErrno(error, 'EEXIST', 'ENOENT')) throw error;
    }
    return;
  }
  const offset = sizeOf(target);
  for await (const chunk of remote.follow(source, offset, signal)) await appendFile(target, chunk, { mode: 0o600 });
}

const sizeOf = (path: string): number => statSync(path, { throwIfNoEntry: false })?.size ?? 0;

/** The end of a log is looked for within so many bytes. */
const tailBytes = 16_384;

/** The last lines of a file; empty when it is not there. */
export function lastLines(path: string, count: number): readonly string[] {
  const size = sizeOf(path);
  if (size === 0) return [];
  const file = openSync(path, 'r');
  try {
    const buffer = Buffer.alloc(Math.min(size, tailBytes));
    const read = readSync(file, buffer, 0, buffer.length, size - buffer.length);
    const lines = buffer.toString('utf8', 0, read).split('\n');
    return (lines.at(-1) === '' ? lines.slice(0, -1) : lines).slice(-count);
  } finally {
    closeSync(file);
  }
}
