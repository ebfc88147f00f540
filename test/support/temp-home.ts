import { execFileSync } from 'node:child_process';
import { chmodSync, mkdtempSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { hasErrno } from '../../src/shared/errors.ts';

/**
 * Creates an empty folder of mode 0700 for SVC_HOME; its path is short, because the paths of Unix sockets are limited.
 */
export function makeTempHome(): string {
  const home = mkdtempSync(join(tmpdir(), 'svc-t-'));
  chmodSync(home, 0o700);
  return home;
}

/** Runs `use` with a new folder and always removes the folder afterwards. */
export async function withTempHome<Result>(use: (home: string) => Promise<Result> | Result): Promise<Result> {
  const home = makeTempHome();
  try {
    return await use(home);
  } finally {
    await removeTempHome(home);
  }
}

/**
 * Removes the home of a test. A failed test may leave folders that their owner cannot change; that must not hide the
 * test's own error.
 */
export async function removeTempHome(home: string): Promise<void> {
  try {
    await removeFolder(home);
  } catch {
    execFileSync('chmod', ['-R', 'u+rwX', home]);
    await removeFolder(home);
  }
}

/**
 * Removes a folder into which a killed process may still write for a moment: retries for 5 s while the folder is not
 * empty. The options of `rm` do not suffice: `rmSync` waits for whole seconds or not at all, and `rm` retries in each
 * subfolder (Node.js 24.21).
 */
async function removeFolder(path: string): Promise<void> {
  const deadline = performance.now() + 60_000;
  for (;;) {
    try {
      return await rm(path, { recursive: true, force: true });
    } catch (error) {
      if (!hasErrno(error, 'ENOTEMPTY', 'EBUSY') || performance.now() > deadline) throw error;
      await sleep(100);
    }
  }
}
