import { execFileSync } from 'node:child_process';
import { chmodSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

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
    removeTempHome(home);
  }
}

/** A test that failed half way may leave folders that even their owner may not change: its own error must come through. */
function removeTempHome(home: string): void {
  try {
    rmSync(home, { recursive: true, force: true, maxRetries: 5, retryDelay: 100 });
  } catch {
    execFileSync('chmod', ['-R', 'u+rwX', home]);
    rmSync(home, { recursive: true, force: true, maxRetries: 5, retryDelay: 100 });
  }
}
