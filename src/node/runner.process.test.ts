import { execFile, spawn } from 'node:child_process';
import { copyFileSync, existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { withTempHome } from '../../test/support/temp-home.ts';
import { waitFor } from '../../test/support/wait-for.ts';

const run = promisify(execFile);

test('a program that is asked to end before it has a session of its own is asked once it has', async () => {
  await withTempHome(async (dir) => {
    const runner = join(dir, 'runner.sh');
    copyFileSync(new URL('runner.sh', import.meta.url), runner);
    // As on a machine that is slow to start processes.
    writeFileSync(join(dir, 'settings'), `svc_workdir='${dir}'\nsvc_waits=\nsvc_enter() { sleep 1; exec setsid "$@"; }\n`);
    writeFileSync(join(dir, 'env'), '');
    writeFileSync(join(dir, 'run.sh'), 'exec sleep 1000\n');
    spawn('sh', [runner, 'start', dir], { stdio: 'ignore' });
    const record = (): string => (existsSync(join(dir, 'status')) ? readFileSync(join(dir, 'status'), 'utf8') : '');
    await waitFor('the program to begin', () => record().includes('phase=run'));
    await run('sh', [runner, 'stop', dir, '20000']);
    expect(record()).toContain('signal=SIGTERM');
  });
});
