import { execFileSync } from 'node:child_process';
import { chmodSync, mkdtempSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { hasErrno } from '../../src/shared/errors.ts';

/** A fresh, empty folder of mode 0700 for SVC_HOME; short, as Unix sockets below it must be. */
export function makeTempHome(): string {
  const home = mkdtempSync(join(tmpdir(), 'svc-t-'));
  chmodSync(home, 0o700);
  return home;
}

/** Runs `use` with a folder of its own and removes the folder afterwards, whatever happened. */
export async function withTempHome<Result>(use: (home: string) => Promise<Result> | Result): Promise<Result> {
  const home = makeTempHome();
  try {
    return await use(home);
  } finally {
    await removeTempHome(home);
  }
}

/** Removes the home of a test. One that failed half way may leave folders that even their owner may not change: its own error must come through. */
export async function removeTempHome(home: string): Promise<void> {
  try {
    await removeFolder(home);
  } catch {
    execFileSync('chmod', ['-R', 'u+rwX', home]);
    await removeFolder(home);
  }
}

/**
 * Removes a folder in which a process that was killed may write for a moment more: it is tried again for 5 s while it is not empty after all. Not
 * left to the options of `rm`: those of `rmSync` wait for whole seconds or not at all, and `rm` tries again in each folder within (Node.js 24.21).
 */
async function removeFolder(path: string): Promise<void> {
  const deadline = performance.now() + 5_000;
  for (;;) {
    try {
      return await rm(path, { recursive: true, force: true });
    } catch (error) {
      if (!hasErrno(error, 'ENOTEMPTY', 'EBUSY') || performance.now() > deadline) throw error;
      await sleep(100);
    }
  }
}
