import { constants, type Stats } from 'node:fs';
import { chmod, copyFile, lstat, mkdir, readdir, readlink, rm, symlink, utimes } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { lstatIfThere } from '../shared/system/files.ts';

interface CopyOptions {
  readonly signal?: AbortSignal;
  readonly keepExtra?: boolean;
  /** Skips paths for which it returns true: relative to the tree, with `/`. */
  readonly ignore?: (path: string, isFolder: boolean) => boolean;
  /** Called for what cannot be copied: sockets, pipes, devices, and names that are not UTF-8. */
  readonly onSkipped?: (path: string, stats: Stats | undefined) => void;
}

/** Per folder: enough to keep the disk busy. */
const filesAtOnce = 16;

/**
 * Makes `to` equal to `from`, a folder or file, with modes, times and symbolic links. Copies new and changed files, and
 * removes those that `from` lacks unless `keepExtra`. Skips sockets, pipes and devices. Where the file system supports
 * it, source and copy share data until one changes.
 */
export async function copyTree(from: string, to: string, options: CopyOptions = {}): Promise<void> {
  const source = await lstat(from);
  await mkdir(dirname(to), { recursive: true });
  if (source.isDirectory()) await copyFolder(from, to, '', source, options);
  else await copyEntry(from, to, source, options);
}

async function copyFolder(from: string, to: string, path: string, source: Stats, options: CopyOptions): Promise<void> {
  options.signal?.throwIfAborted();
  const before = await lstatIfThere(to);
  if (before !== undefined && !before.isDirectory()) await remove(to);
  if (before?.isDirectory() !== true) await mkdir(to, { mode: 0o700 });
  // Needed to create files in the folder. Its own mode comes when it is filled.
  else if ((before.mode & 0o700) !== 0o700) await chmod(to, 0o700);
  const folders: (readonly [name: string, stats: Stats])[] = [];
  const files: (readonly [name: string, stats: Stats])[] = [];
  const names = new Set<string>();
  for (const name of await readdir(from)) {
    const stats = await lstatIfThere(join(from, name));
    // Removed meanwhile, or the copy itself, which lies within the source.
    if (stats === undefined && name.includes('\uFFFD')) options.onSkipped?.(path + name, undefined);
    if (stats === undefined || join(from, name) === to) continue;
    if (options.ignore?.(path + name, stats.isDirectory()) === true) continue;
    if (!stats.isDirectory() && !stats.isFile() && !stats.isSymbolicLink()) options.onSkipped?.(path + name, stats);
    names.add(name);
    (stats.isDirectory() ? folders : files).push([name, stats]);
  }
  if (options.keepExtra !== true) for (const name of await readdir(to)) if (!names.has(name)) await remove(join(to, name));
  for (let first = 0; first < files.length; first += filesAtOnce) {
    options.signal?.throwIfAborted();
    const group = files.slice(first, first + filesAtOnce);
    await Promise.all(group.map(([name, stats]) => copyEntry(join(from, name), join(to, name), stats, options)));
  }
  for (const [name, stats] of folders) await copyFolder(join(from, name), join(to, name), `${path}${name}/`, stats, options);
  await chmod(to, source.mode & 0o7777);
  await utimes(to, source.atime, source.mtime);
}

async function copyEntry(from: string, to: string, source: Stats, options: CopyOptions): Promise<void> {
  options.signal?.throwIfAborted();
  const before = await lstatIfThere(to);
  if (source.isSymbolicLink()) {
    const target = await readlink(from);
    if (before?.isSymbolicLink() === true && (await readlink(to)) === target) return;
    if (before !== undefined) await remove(to);
    await symlink(target, to);
    return;
  }
  if (!source.isFile()) return;
  const mode = source.mode & 0o7777;
  if (before !== undefined && isSameFile(source, before)) {
    if ((before.mode & 0o7777) !== mode) await chmod(to, mode);
    return;
  }
  // Not overwritten: a process may be running or reading the old file.
  if (before !== undefined) await remove(to);
  await copyFile(from, to, constants.COPYFILE_EXCL | constants.COPYFILE_FICLONE);
  await chmod(to, mode);
  await utimes(to, source.atime, source.mtime);
}

/** As rsync: equal size and mtime. Times are set in microseconds, so finer ones differ. */
function isSameFile(source: Stats, target: Stats): boolean {
  return target.isFile() && target.size === source.size && Math.abs(target.mtimeMs - source.mtimeMs) < 1;
}

async function remove(path: string): Promise<void> {
  await rm(path, { recursive: true, force: true });
}
