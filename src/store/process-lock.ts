import { DatabaseSync } from 'node:sqlite';
import { chmodSync, mkdirSync } from 'node:fs';
import { dirname } from 'node:path';

/** A lock that one process holds; the kernel gives it back when the process ends, however it ends. */
export interface ProcessLock {
  release(): void;
}

/**
 * Takes a lock named by a file, or gives undefined when another living process has it. SQLite's own file lock is used, because it leaves
 * nothing stale behind: a pid file would have to be guessed about after a crash.
 */
export function tryProcessLock(path: string): ProcessLock | undefined {
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  const database = new DatabaseSync(path);
  try {
    chmodSync(path, 0o600);
    database.exec('pragma locking_mode = exclusive; pragma busy_timeout = 0; begin exclusive');
  } catch (error) {
    database.close();
    if (error instanceof Error && /locked|busy/i.test(error.message)) return undefined;
    throw error;
  }
  return { release: () => database.close() };
}
