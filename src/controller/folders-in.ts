import { readdirSync } from 'node:fs';
import { hasErrno } from '../shared/errors.ts';

/** Names in a folder; none when it is not there. */
export function foldersIn(path: string): readonly string[] {
  try {
    return readdirSync(path);
  } catch (error) {
    if (hasErrno(error, 'ENOENT')) return [];
    throw error;
  }
}
