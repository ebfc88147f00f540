import { chmodSync, closeSync, mkdirSync, openSync, statSync } from 'node:fs';
import { dirname } from 'node:path';
import { Kysely, sql } from 'kysely';
import type { Clock } from '../shared/clock.ts';
import { hasErrno, messageOf, SvcError } from '../shared/errors.ts';
import { DatabaseFile, refuseForeignFile, sealAsOlder, setAsideForeignLog, stateReplaced, whyReplaced } from './database-file.ts';
import { ownSpaceBytes, type Driver } from './driver.ts';
import { nodeSqliteDialect } from './node-sqlite.ts';
import type { Schema } from './schema.ts';
import { isNoSpace } from './sqlite-errors.ts';

const pageBytes = 4_096;

/**
 * Opens or creates the database file at `path`, for its owner only. Any number of processes may have it open. A
 * replaced file must first be opened with `mayAcceptReplacedFile`, while no process has the former file open. Others
 * get SVC_STATE_REPLACED until then. `makeSpace` frees space on a full disk; the write is repeated if it did.
 */
export async function openSqlite(path: string, clock: Clock, mayAcceptReplacedFile = true, makeSpace = () => false): Promise<Driver> {
  const file = settle(path, clock, mayAcceptReplacedFile);
  makePrivateFile(path);
  const db = new Kysely<Schema>({ dialect: nodeSqliteDialect(path, clock, makeSpace) });
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
    async write(work) {
      for (;;) {
        try {
          return await db.transaction().execute(work);
        } catch (error) {
          // The transaction was rolled back, so nothing has changed.
          if (!isNoSpace(error) || !makeSpace()) throw error;
        }
      }
    },
    async hasOwnSpace() {
      const { rows } = await sql<{ freelist_count: number }>`pragma freelist_count`.execute(db);
      const logBytes = statSync(`${path}-wal`, { throwIfNoEntry: false })?.size ?? 0;
      return (rows[0]?.freelist_count ?? 0) * pageBytes >= ownSpaceBytes / 2 && logBytes >= ownSpaceBytes;
    },
    counterType: 'integer',
    binaryType: 'blob',
    selfCounting: (column) => column.primaryKey().autoIncrement(),
    file,
    async copyTo(copy) {
      // SQLite reads one snapshot and leaves out what was deleted.
      await sql`vacuum into ${copy}`.execute(db);
      chmodSync(copy, 0o600);
      sealAsOlder(copy);
    },
    close: () => db.destroy(),
  };
}

function settle(path: string, clock: Clock, mayAcceptReplacedFile: boolean): DatabaseFile {
  try {
    refuseForeignFile(path);
    const why = whyReplaced(path);
    if (why !== undefined && !mayAcceptReplacedFile) throw stateReplaced(path, why);
    return new DatabaseFile(path, why, mayAcceptReplacedFile ? setAsideForeignLog(path, clock.now()) : []);
  } catch (error) {
    throw error instanceof SvcError ? error : unusable(path, error);
  }
}

/**
 * SQLite would create the file as the umask says, and gives the files beside it (-wal, -shm) the same permissions.
 * Never opens an existing file: closing it would drop this process's own locks on it, because POSIX locks belong to the
 * process (https://www.sqlite.org/howtocorrupt.html, section 2.2).
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
