import { dirname } from 'node:path';
import { SvcError } from '../shared/errors.ts';

/** Primary result codes, https://www.sqlite.org/rescode.html: the low byte of an extended code. */
const codes = { perm: 3, busy: 5, locked: 6, readonly: 8, ioError: 10, corrupt: 11, full: 13, cannotOpen: 14, notADatabase: 26 } as const;

/** SQLITE_IOERR_SHMSIZE: the shared file could not grow. A full disk causes this during opening. */
const sharedMemorySizeError = 4874;

interface SqliteError extends Error {
  readonly errcode: number;
}

function isSqliteError(error: unknown): error is SqliteError {
  return error instanceof Error && 'errcode' in error && typeof error.errcode === 'number';
}

/** Whether another connection held the lock. The statement had no effect and may succeed later. */
export function isBusy(error: unknown): boolean {
  if (!isSqliteError(error)) return false;
  const primary = error.errcode & 0xff;
  return primary === codes.busy || primary === codes.locked;
}

/** Whether an explained error means that the disk is full. The failed operation has changed nothing. */
export const isNoSpace = (error: unknown): boolean => error instanceof SvcError && error.code === 'SVC_NO_SPACE';

/** Whether a file is not a database at all, or is an encrypted one. */
export function isNoDatabase(error: unknown): boolean {
  return isSqliteError(error) && (error.errcode & 0xff) === codes.notADatabase;
}

/** The error to show for a failure that SQLite reported about the database at `path`. Others stay unchanged. */
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
      return new SvcError('SVC_STATE_CORRUPT', `The state database ${path} cannot be read: ${error.message}.`, {
        hint: `Put a copy of it at its place, or begin with an empty one: mv ${path} ${path}.bad; then svc serve status names what still runs, and svc controller sweep removes that.`,
        cause: error,
      });
    case codes.perm:
    case codes.readonly:
    case codes.cannotOpen:
      return new SvcError('SVC_HOME_UNUSABLE', `The state database ${path} cannot be opened for writing: ${error.message}.`, {
        hint: `Make it and its folder writable for this user (ls -la ${dirname(path)}), then run the command again. Nothing of it was changed.`,
        cause: error,
      });
    default:
      // A mistake in a query or a broken constraint: a bug in svc, which must show as one.
      return error;
  }
}

function noSpace(path: string, cause: unknown): SvcError {
  return new SvcError('SVC_NO_SPACE', `There is no space left to write the state database ${path}.`, {
    hint: 'Free space on the disk that holds it; everything saved so far is safe.',
    cause,
  });
}
