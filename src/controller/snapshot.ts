import { mkdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { Task } from '../domain/task.ts';
import { copyTree } from '../remote/copy-tree.ts';
import { hasErrno, messageOf, SvcError } from '../shared/errors.ts';

/** Folders that are history or caches of tools and no part of a program. */
const leftOut = new Set(['.git']);

/**
 * Copies a task's working directory and file mounts to a folder of ours, so that a replica launched next week is identical to today's, whatever
 * happened to the originals. Leaves nothing behind when it fails.
 */
export async function takeSnapshot(task: Task, dir: string): Promise<void> {
  try {
    await mkdir(dir, { recursive: true, mode: 0o700 });
    if (task.workdir?.kind === 'path') await copy(task.workdir.path, join(dir, 'workdir'));
    for (const [index, mount] of task.fileMounts.entries()) {
      if (mount.source.kind === 'path') await copy(mount.source.path, join(dir, 'mounts', String(index)));
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

function copy(from: string, to: string): Promise<void> {
  return copyTree(from, to, { ignore: (path) => leftOut.has(path.slice(path.lastIndexOf('/') + 1)) });
}
