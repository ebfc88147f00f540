import { readFileSync, statSync } from 'node:fs';
import { hasErrno, messageOf, SvcError } from '../shared/errors.ts';

/**
 * Reads a small text file that a user named. `what` describes it (`Task file`). Throws SVC_FILE_NOT_FOUND,
 * SVC_FILE_UNREADABLE (a folder, no permission, not UTF-8), or the error of `tooBig` for more than `maxBytes`, unread.
 */
export function readTextFile(path: string, what: string, maxBytes: number, tooBig: (path: string) => SvcError): string {
  try {
    const stats = statSync(path);
    if (stats.isDirectory()) throw new SvcError('SVC_FILE_UNREADABLE', `${what} ${path} is a folder.`, { hint: 'Name a file.' });
    if (stats.size > maxBytes) throw tooBig(path);
    return decode(readFileSync(path), path, what);
  } catch (error: unknown) {
    if (hasErrno(error, 'ENOENT', 'ENOTDIR')) throw new SvcError('SVC_FILE_NOT_FOUND', `${what} ${path} does not exist.`, { cause: error });
    if (error instanceof SvcError) throw error;
    const reason = hasErrno(error, 'EACCES', 'EPERM') ? 'permission denied' : messageOf(error);
    throw new SvcError('SVC_FILE_UNREADABLE', `${what} ${path} cannot be read: ${reason}.`, { cause: error });
  }
}

/** Strict UTF-8; a byte order mark is removed. */
export function decode(bytes: Uint8Array, path: string, what: string): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch (error: unknown) {
    throw new SvcError('SVC_FILE_UNREADABLE', `${what} ${path} is not UTF-8 text.`, { hint: 'Save it as UTF-8.', cause: error });
  }
}
