import { chmodSync, closeSync, mkdirSync, openSync, statSync } from 'node:fs';
import { dirname } from 'node:path';
import { Kysely, sql } from 'kysely';
import type { Clock } from '../shared/clock.ts';
import { hasErrno, messageOf, SvcError } from '../shared/errors.ts';
import type { Driver } from './driver.ts';
import { nodeSqliteDialect } from './node-sqlite.ts';
import type { Schema } from './schema.ts';

/** Opens or creates the database file at `path`, readable by its owner alone. Any number of processes may have it open. */
export async function openSqlite(path: string, clock: Clock): Promise<Driver> {
  makePrivateFile(path);
  const db = new Kysely<Schema>({ dialect: nodeSqliteDialect(path, clock) });
  const mode = await sql<{ journal_mode: string }>`pragma journal_mode`.execute(db);
  if (mode.rows[0]?.journal_mode !== 'wal') {
    await db.destroy();
    throw new SvcError(
      'SVC_HOME_UNUSABLE',
      `The file system of ${path} cannot share memory between processes, which the state database needs.`,
      {
        hint: 'Set SVC_HOME to a folder on a local disk.',
      },
    );
  }
  return {
    name: 'sqlite',
    isShared: false,
    db,
    write: (work) => db.transaction().execute(work),
    counterType: 'integer',
    binaryType: 'blob',
    selfCounting: (column) => column.primaryKey().autoIncrement(),
    close: () => db.destroy(),
  };
}

/**
 * SQLite would create the file with the permissions that the umask leaves; it gives those of the database to the files beside it (-wal, -shm).
 * An existing file is never opened here: closing it would drop the locks that this very process has on it (POSIX locks belong to the
 * process; https://www.sqlite.org/howtocorrupt.html, section 2.2).
 */
function makePrivateFile(path: string): void {
  try {
    mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
    closeSync(openSync(path, 'wx', 0o600));
  } catch (error) {
    if (hasErrno(error, 'ENOSPC', 'EDQUOT'))
      throw new SvcError('SVC_NO_SPACE', `There is no space left to create ${path}.`, { cause: error });
    if (!hasErrno(error, 'EEXIST')) throw unusable(path, error);
    tightenPermissions(path);
  }
}

function tightenPermissions(path: string): void {
  try {
    if ((statSync(path).mode & 0o077) !== 0) chmodSync(path, 0o600);
  } catch (error) {
    throw unusable(path, error);
  }
}

function unusable(path: string, cause: unknown): SvcError {
  return new SvcError('SVC_HOME_UNUSABLE', `The state database ${path} cannot be created or made private: ${messageOf(cause)}.`, { cause });
}
