import { execFileSync } from 'node:child_process';
import { closeSync, openSync, writeSync } from 'node:fs';
import { hasErrno } from '../../src/shared/errors.ts';

/**
 * Mounts a small file system at an empty folder while `work` runs; only root can. `options` are those of tmpfs, such as
 * `size=40m`.
 */
export async function withSmallDisk(folder: string, options: string, work: () => void | Promise<void>): Promise<void> {
  execFileSync('mount', ['-t', 'tmpfs', '-o', `${options},mode=700`, 'svc-test', folder]);
  try {
    await work();
  } finally {
    execFileSync('umount', ['--lazy', folder]);
  }
}

/** Writes until the disk is completely full. */
export function fillDisk(path: string): void {
  const file = openSync(path, 'a');
  try {
    for (const size of [1_048_576, 4_096]) {
      try {
        for (;;) writeSync(file, Buffer.alloc(size));
      } catch (error) {
        if (!hasErrno(error, 'ENOSPC')) throw error;
      }
    }
  } finally {
    closeSync(file);
  }
}
