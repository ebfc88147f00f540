import { join } from 'node:path';
import type { Task } from '../domain/task.ts';

/** Where a task's mounts were copied to at `up`, and where they go on the machine, relative to its working directory. */
export function fileMounts(task: Task, snapshotDir: string): readonly { readonly source: string; readonly target: string }[] {
  return task.fileMounts.map((mount, index) => ({ source: join(snapshotDir, String(index)), target: mount.target }));
}
