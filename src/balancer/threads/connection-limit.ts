import { readFileSync } from 'node:fs';
import type { FileLimits } from '../board/file-budget.ts';

/** Files of the process itself and of connections that it refuses for lack of room. */
const ownFiles = 64;
const filesPerThread = 96;

/** One file for the client and one for the replica. */
const filesPerConnection = 2;

/** Used when the limit cannot be read. */
const commonLimit = 1_024;

/** Allows at least one client with one request. `asked`: the configured maximum of clients. */
export function fileLimits(asked: number | null, openFiles: number, threads: number): FileLimits {
  const files = Math.max(filesPerConnection, openFiles - ownFiles - threads * filesPerThread);
  return { files, connections: Math.min(asked ?? Number.POSITIVE_INFINITY, Math.floor(files / filesPerConnection)) };
}

/** How many files this process may have open. */
export function openFilesLimit(): number {
  try {
    const [, soft = ''] = /^Max open files\s+(\d+|unlimited)/m.exec(readFileSync('/proc/self/limits', 'utf8')) ?? [];
    return soft === 'unlimited' ? Number.MAX_SAFE_INTEGER : Number(soft) || commonLimit;
  } catch {
    // No /proc: use the usual limit, which nearly every system has.
    return commonLimit;
  }
}
