import { SvcError } from '../shared/errors.ts';

/** Primary result codes, https://www.sqlite.org/rescode.html; the low byte of an extended one. */
const codes = { perm: 3, busy: 5, locked: 6, readonly: 8, ioError: 10, corrupt: 11, full: 13, cannotOpen: 14, notADatabase: 26 } as const;

/** SQLITE_IOERR_SHMSIZE: the file shared between processes could not grow, which is what a full disk looks like while opening. */
const sharedMemorySizeError = 4874;

/** The part of node:sqlite's errors that tells what went wrong. */
interface SqliteError extends Error {
  /** Extended result code. */
  readonly errcode: number;
}

function isSqliteError(error: unknown): error is SqliteError {
  return error instanceof Error && 'errcode' in error && typeof error.errcode === 'number';
}

/** Whether another connection has the lock that was needed: nothing was done, and the same statement may succeed later. */
export function isBusy(error: unknown): boolean {
  if (!isSqliteError(error)) return false;
  const primary = error.errcode & 0xff;
  return primary === codes.busy || primary === codes.locked;
}

/** The error to show for what SQLite reported about the database at `path`; anything else comes back as it is. */
export function explainSqliteError(error: unknown, path: string): unknown {
  if (!isSqliteError(error)) return error;
  if (isBusy(error)) {
    return new SvcError('SVC_STATE_BUSY', `The state database ${path} is kept locked by another process.`, { cause: error });
  }
  if (error.errcode === sharedMemorySizeError) return noSpace(path, error);
  switch (error.errcode & 0xff) {
    case codes.full:
      return noSpace(path, error);
    case codes.corrupt:
    case codes.notADatabase:
    case codes.ioError:
      return new SvcError('SVC_STATE_CORRUPT', `The state database ${path} cannot be read: ${error.message}.`, { cause: error });
    case codes.perm:
    case codes.readonly:
    case codes.cannotOpen:
      return new SvcError('SVC_HOME_UNUSABLE', `The state database ${path} cannot be opened for writing: ${error.message}.`, {
        cause: error,
      });
    default:
      // A mistake in a query or a broken constraint: a bug of ours, which has to show as one.
      return error;
  }
}

function noSpace(path: string, cause: unknown): SvcError {
  return new SvcError('SVC_NO_SPACE', `There is no space left to write the state database ${path}.`, {
    hint: 'Free space on the disk that holds it; everything saved so far is safe.',
    cause,
  });
}
