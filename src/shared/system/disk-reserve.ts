import { mkdirSync, readdirSync, rmSync, statfsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { hasErrno } from '../errors.ts';
import type { HomePaths } from '../paths.ts';

const mebibyte = 1_048_576;

/** A start of the controller needs 32 KiB that SQLite's processes share, and some small files. */
const reserveFiles = 16;
const reserveFileBytes = mebibyte / 2;

/** Limits below which the disk counts as full. */
const fullBelow = { bytes: mebibyte / 4, inodes: 4 } as const;

/** Limits below which svc warns users. The reserve is made only above them. */
const spareAbove = { bytes: 128 * mebibyte, inodes: 256 } as const;

interface DiskSpace {
  readonly bytes: number;
  /** Infinity for a file system that does not count inodes. */
  readonly inodes: number;
}

const isBelow = (free: DiskSpace, limit: DiskSpace): boolean => free.bytes < limit.bytes || free.inodes < limit.inodes;

/** Free space on the disk of SVC_HOME when it is low, else undefined. */
export function scarceSpace(paths: HomePaths): DiskSpace | undefined {
  const free = freeSpace(paths);
  return isBelow(free, spareAbove) ? free : undefined;
}

/** Whether the disk of SVC_HOME counts as full. */
export const isDiskFull = (paths: HomePaths): boolean => isBelow(freeSpace(paths), fullBelow);

/** Creates the reserve when there is enough space. Call it every few seconds. */
export function keepReserve(paths: HomePaths): void {
  if (scarceSpace(paths) !== undefined || filesOf(paths).length === reserveFiles) return;
  const dir = reserveDir(paths);
  mkdirSync(dir, { recursive: true, mode: 0o700 });
  // Written in full: a sparse file would reserve no space.
  for (let index = 0; index < reserveFiles; index += 1)
    writeFileSync(join(dir, String(index)), Buffer.alloc(reserveFileBytes), { mode: 0o600 });
}

/**
 * Frees a part of the reserve; false when none is left. Only for a write that just failed for lack of space and is
 * repeated at once: a program that fills the disk takes free space within milliseconds. Does not check the free space,
 * which does not show a user's quota.
 */
export function releaseReserve(paths: HomePaths): boolean {
  const files = filesOf(paths).slice(0, reserveFiles / 4);
  for (const file of files) rmSync(join(reserveDir(paths), file), { force: true });
  return files.length > 0;
}

/** Runs work that may fail on a full disk, and repeats it after freeing each part of the reserve. */
export async function withReserve<Result>(paths: HomePaths, work: () => Result | Promise<Result>): Promise<Result> {
  for (;;) {
    try {
      return await work();
    } catch (error) {
      // Another disk may be full, such as that of /tmp. Only the error shows an exceeded quota.
      const helps = hasErrno(error, 'EDQUOT') || (hasErrno(error, 'ENOSPC') && isDiskFull(paths));
      if (!helps || !releaseReserve(paths)) throw error;
    }
  }
}

const reserveDir = (paths: HomePaths): string => join(paths.home, 'reserve');

function filesOf(paths: HomePaths): readonly string[] {
  try {
    return readdirSync(reserveDir(paths));
  } catch (error) {
    if (!hasErrno(error, 'ENOENT', 'ENOTDIR')) throw error;
    // The folder belongs to svc. A file at its path would prevent the reserve.
    rmSync(reserveDir(paths), { force: true });
    return [];
  }
}

function freeSpace(paths: HomePaths): DiskSpace {
  try {
    const { bavail, bsize, files, ffree } = statfsSync(paths.home);
    return { bytes: bavail * bsize, inodes: files === 0 ? Number.POSITIVE_INFINITY : ffree };
  } catch (error) {
    // Without SVC_HOME there is nothing to reserve.
    if (hasErrno(error, 'ENOENT')) return { bytes: Number.POSITIVE_INFINITY, inodes: Number.POSITIVE_INFINITY };
    throw error;
  }
}
