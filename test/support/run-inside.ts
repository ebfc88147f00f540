import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { vi } from 'vitest';
import type { ExecResult, Remote } from '../../src/remote/remote.ts';

/** Runs a shell script as a command inside a machine, as its program would. */
export const runInside = (remote: Remote, script: string): Promise<ExecResult> => remote.exec([...remote.enter, 'sh', '-c', script]);

/**
 * Puts a command before the system's command of that name: a shell script, then the system's command with the arguments
 * as the script leaves them.
 */
export async function withCommand<Result>(name: 'mount' | 'bwrap', script: string, use: () => Promise<Result>): Promise<Result> {
  const { stdout } = await promisify(execFile)('/bin/sh', ['-c', `command -v ${name}`]);
  // Not below /tmp, because the program sees a /tmp of its own.
  const bin = mkdtempSync(join(homedir(), '.svc-bin-'));
  writeFileSync(join(bin, name), `#!/bin/sh\n${script}\nexec ${stdout.trim()} "$@"\n`, { mode: 0o755 });
  vi.stubEnv('PATH', `${bin}:${process.env['PATH']}`);
  try {
    return await use();
  } finally {
    vi.unstubAllEnvs();
    rmSync(bin, { recursive: true, force: true });
  }
}
