import { readdirSync } from 'node:fs';
import { hasErrno } from '../shared/errors.ts';

/** Names in a folder; empty when the folder does not exist. */
export function foldersIn(path: string): readonly string[] {
  try {
    return readdirSync(path);
  } catch (error) {
    if (hasErrno(error, 'ENOENT')) return [];
    throw error;
  }
}
