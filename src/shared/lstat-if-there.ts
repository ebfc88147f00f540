import type { Stats } from 'node:fs';
import { lstat } from 'node:fs/promises';
import { hasErrno } from './errors.ts';

/** What a path is, links themselves included; undefined when there is nothing. Throws what Node throws when it may not be looked at. */
export async function lstatIfThere(path: string): Promise<Stats | undefined> {
  try {
    return await lstat(path);
  } catch (error) {
    if (hasErrno(error, 'ENOENT', 'ENOTDIR')) return undefined;
    throw error;
  }
}
