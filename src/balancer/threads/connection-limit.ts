import { readFileSync } from 'node:fs';

/** Files that the process needs for itself: its own, those of its threads, and connections that are told there is no room. */
const ownFiles = 64;
const filesPerThread = 96;

/** One to the client and one to the replica. */
const filesPerConnection = 2;

/** When the limit cannot be read. */
const commonLimit = 1_024;

/** How many connections of clients may be open at once: what is asked for, but no more than the limit of open files allows, and one at least. */
export function connectionLimit(asked: number | null, openFiles: number, threads: number): number {
  const allowed = Math.floor((openFiles - ownFiles - threads * filesPerThread) / filesPerConnection);
  return Math.max(1, Math.min(asked ?? Number.POSITIVE_INFINITY, allowed));
}

/** How many files this process may have open. */
export function openFilesLimit(): number {
  try {
    const [, soft = ''] = /^Max open files\s+(\d+|unlimited)/m.exec(readFileSync('/proc/self/limits', 'utf8')) ?? [];
    return soft === 'unlimited' ? Number.MAX_SAFE_INTEGER : Number(soft) || commonLimit;
  } catch {
    // No /proc here: a limit that nearly every system has.
    return commonLimit;
  }
}
