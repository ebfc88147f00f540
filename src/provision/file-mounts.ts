import { join, posix } from 'node:path';
import type { Task } from '../domain/task.ts';
import type { LocalSource } from './files/delivery.ts';

/** What is to be at `target` on a machine: relative to the working directory, below `~/`, or absolute. */
export interface MountedFiles {
  /** A copy on this machine, or the `s3:` or `https:` address that the machine fetches from. */
  readonly source: LocalSource | string;
  readonly target: string;
}

/**
 * Where a task's mounts come from and where they go. Those from this machine were copied to `snapshotDir` at `up`; `name` stands for the copies of
 * this version among all of the owner.
 */
export function fileMounts(task: Task, snapshotDir: string, name: string): readonly MountedFiles[] {
  return task.fileMounts.map(({ source, target }, index) => ({
    source: source.kind === 'path' ? { path: join(snapshotDir, String(index)), name: `${name}-mount-${index}` } : source.uri,
    target,
  }));
}

/** Whether a mount goes to a place on its machine that may have other things besides. */
export function isOutsideWorkdir(target: string): boolean {
  const path = posix.normalize(target);
  return path.startsWith('/') || path === '~' || path.startsWith('~/') || path === '..' || path.startsWith('../');
}
