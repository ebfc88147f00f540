import { chmod, lstat, readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { hasErrno } from '../errors.ts';

/**
 * Removes a file or a folder with all that is in it, also folders whose permissions forbid it. Succeeds when it is
 * already gone. Throws an error with an errno when it cannot.
 */
export async function removeStubborn(path: string): Promise<void> {
  try {
    await rm(path, { recursive: true, force: true });
  } catch (error) {
    if (!hasErrno(error, 'EACCES', 'EPERM', 'ENOTEMPTY')) throw error;
    // Programs create folders that even their owner may not change, such as module caches.
    await openFolders(path);
    await rm(path, { recursive: true, force: true, maxRetries: 5 });
  }
}

/** Ignores entries that vanish: the refused removal may still be removing some. */
async function openFolders(path: string): Promise<void> {
  try {
    if (!(await lstat(path)).isDirectory()) return;
    await chmod(path, 0o700);
  } catch (error) {
    if (hasErrno(error, 'ENOENT', 'ENOTDIR')) return;
    throw error;
  }
  for (const name of await namesIn(path)) await openFolders(join(path, name));
}

/** The names of the entries of a folder; none when it is gone or is no folder. */
export async function namesIn(dir: string): Promise<readonly string[]> {
  try {
    return await readdir(dir);
  } catch (error) {
    if (hasErrno(error, 'ENOENT', 'ENOTDIR')) return [];
    throw error;
  }
}
