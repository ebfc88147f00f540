import { type Dirent, lstatSync, readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import type { HomePaths } from '../shared/paths.ts';
import { hasErrno } from '../shared/errors.ts';
import { identifyProcess } from '../shared/system/process-identity.ts';
import { temporaryFileWriter } from '../shared/system/files.ts';

/** Far longer than any atomic write, ms. */
const oldMs = 3_600_000;

/** Folders below a home that have svc's own files: `local/machines/ID` is the deepest. */
const deepest = 3;

/** Folders of users' files: uploads, and copies of working directories. */
const isOfUser = (name: string): boolean => name === 'uploads' || /^\.?v\d/.test(name);

/**
 * Removes temporary files that killed writers left in a home: only those of svc's atomic writes, older than an hour, whose
 * writer does not run. Returns their number. `now`: ms since the epoch.
 */
export function sweepTemporaryFiles({ home, runtimeDir }: Pick<HomePaths, 'home' | 'runtimeDir'>, now: number): number {
  return sweep(home, now, 0) + (runtimeDir.startsWith(`${home}/`) ? 0 : sweep(runtimeDir, now, deepest));
}

function sweep(dir: string, now: number, depth: number): number {
  let removed = 0;
  for (const entry of entriesOf(dir)) {
    const path = join(dir, entry.name);
    if (entry.isDirectory()) removed += depth < deepest && !isOfUser(entry.name) ? sweep(path, now, depth + 1) : 0;
    else if (entry.isFile() && isLeft(path, entry.name, now)) {
      rmSync(path, { force: true });
      removed += 1;
    }
  }
  return removed;
}

function isLeft(path: string, name: string, now: number): boolean {
  const pid = temporaryFileWriter(name);
  const { mtimeMs } = (pid !== undefined && lstatSync(path, { throwIfNoEntry: false })) || { mtimeMs: now };
  // A reused pid only delays the removal.
  return pid !== undefined && now - mtimeMs > oldMs && identifyProcess(pid) === undefined;
}

function entriesOf(dir: string): readonly Dirent[] {
  try {
    return readdirSync(dir, { withFileTypes: true });
  } catch (error) {
    // A folder that was just removed, or that belongs to a replica's user.
    if (hasErrno(error, 'ENOENT', 'ENOTDIR', 'EACCES')) return [];
    throw error;
  }
}
