import { DatabaseSync } from 'node:sqlite';
import { chmodSync, mkdirSync } from 'node:fs';
import { dirname } from 'node:path';

/** A lock that one process holds. The kernel releases it when the process ends, for any reason. */
export interface ProcessLock {
  release(): void;
}

/** Takes a lock named by a file; undefined when it is taken. SQLite's file lock leaves nothing stale after a crash. */
export function tryProcessLock(path: string): ProcessLock | undefined {
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  const database = new DatabaseSync(path);
  try {
    chmodSync(path, 0o600);
    // Without a journal on disk, because a full disk has no space for it. Nothing is ever written.
    database.exec('pragma journal_mode = memory; pragma locking_mode = exclusive; pragma busy_timeout = 0; begin exclusive');
  } catch (error) {
    database.close();
    if (error instanceof Error && /locked|busy/i.test(error.message)) return undefined;
    throw error;
  }
  return { release: () => database.close() };
}
