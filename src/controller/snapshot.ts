import { mkdir, realpath, rm } from 'node:fs/promises';
import { basename, join, relative } from 'node:path';
import type { Task } from '../domain/task.ts';
import { copyTree } from '../remote/copy-tree.ts';
import { hasErrno, messageOf, SvcError } from '../shared/errors.ts';

/** Folders that are history or caches of tools and no part of a program. */
const leftOut = new Set(['.git']);

/**
 * Copies a task's working directory and file mounts to a folder of ours, so that a replica launched next week is identical to today's, whatever
 * happened to the originals. `home` is SVC_HOME, which is never part of a copy. Leaves nothing behind when it fails.
 */
export async function takeSnapshot(task: Task, dir: string, home: string): Promise<void> {
  try {
    await mkdir(dir, { recursive: true, mode: 0o700 });
    if (task.workdir?.kind === 'path') await copy(task.workdir.path, join(dir, 'workdir'), home);
    for (const [index, mount] of task.fileMounts.entries()) {
      if (mount.source.kind === 'path') await copy(mount.source.path, join(dir, 'mounts', String(index)), home);
    }
  } catch (error) {
    await rm(dir, { recursive: true, force: true });
    if (hasErrno(error, 'ENOSPC', 'EDQUOT')) {
      throw new SvcError('SVC_NO_SPACE', `There is no space left to copy the working directory to ${dir}.`, { cause: error });
    }
    if (hasErrno(error, 'EACCES', 'EPERM'))
      throw new SvcError('SVC_FILE_UNREADABLE', `The working directory cannot be copied: ${messageOf(error)}`, { cause: error });
    throw error;
  }
}

/** A working directory may be reached by a link, and may hold the very folder that it is copied to. */
async function copy(from: string, to: string, home: string): Promise<void> {
  const source = await realpath(from);
  const own = relative(source, await realpath(home));
  await copyTree(source, to, { ignore: (path) => path === own || leftOut.has(basename(path)) });
}
