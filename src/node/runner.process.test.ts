import { execFile, spawn } from 'node:child_process';
import { copyFileSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { killProcessesOf } from '../../test/support/leaks.ts';
import { withTempHome } from '../../test/support/temp-home.ts';
import { waitFor } from '../../test/support/wait-for.ts';
import { enterConf } from '../remote/isolation/enter-settings.ts';
import type { IsolationKind } from '../remote/isolation/kinds.ts';
import { hasErrno } from '../shared/errors.ts';

const run = promisify(execFile);

/** A job that sleeps, entered as told. What this gives says when it runs, ends it, and reads how it ended. */
function startJob(dir: string, enter: string, env: NodeJS.ProcessEnv = process.env) {
  const runner = join(dir, 'runner.sh');
  copyFileSync(new URL('runner.sh', import.meta.url), runner);
  writeFileSync(join(dir, 'settings'), `svc_workdir='${dir}'\nsvc_waits=\nsvc_enter() { ${enter} "$@"; }\n`);
  writeFileSync(join(dir, 'env'), '');
  writeFileSync(join(dir, 'run.sh'), 'exec sleep 1000\n');
  spawn('/bin/sh', [runner, 'start', dir], { stdio: 'ignore', env });
  const record = (): string => (existsSync(join(dir, 'status')) ? readFileSync(join(dir, 'status'), 'utf8') : '');
  return {
    begun: () => waitFor('the program to begin', () => record().includes('phase=run')),
    async stop(): Promise<string> {
      await run('/bin/sh', [runner, 'stop', dir, '20000']);
      return /^signal=(.*)$/m.exec(record())?.[1] ?? 'none';
    },
  };
}

test('a program that is asked to end before it has a session of its own is asked once it has', async () => {
  await withTempHome(async (dir) => {
    // As on a machine that is slow to start processes.
    const job = startJob(dir, 'sleep 1; exec setsid');
    await job.begun();
    expect(await job.stop()).toBe('SIGTERM');
  });
});

/** A folder with what enters an isolation of the kind; gives how. */
function makeEntry(dir: string, isolation: IsolationKind): string {
  for (const file of ['enter.sh', 'forwarder.mjs']) copyFileSync(new URL(file, import.meta.url), join(dir, file));
  mkdirSync(join(dir, 'tmp'), { mode: 0o1777 });
  const settings = { node: process.execPath, socket: join(dir, 'way-in.sock'), proxySocket: '', egress: '', keep: [dir] };
  writeFileSync(join(dir, 'enter.conf'), enterConf({ isolation, outbound: 'none', ...settings }));
  return `/bin/sh '${join(dir, 'enter.sh')}'`;
}

/** Makes a command take a second longer. */
async function slowCommand(dir: string, name: string): Promise<NodeJS.ProcessEnv> {
  const { stdout } = await run('/bin/sh', ['-c', 'command -v "$1"', 'sh', name]);
  mkdirSync(join(dir, 'bin'));
  writeFileSync(join(dir, 'bin', name), `#!/bin/sh\nsleep 1\nexec ${stdout.trim()} "$@"\n`, { mode: 0o755 });
  return { ...process.env, PATH: `${join(dir, 'bin')}:${process.env['PATH']}` };
}

/** Whether this computer can isolate in that way. */
async function isPossible(isolation: IsolationKind): Promise<boolean> {
  return withTempHome(async (dir) => {
    try {
      await run('/bin/sh', ['-c', `${makeEntry(dir, isolation)} true`]);
      return true;
    } catch (error) {
      if (hasErrno(error, 'ENOENT')) throw error;
      return false;
    }
  });
}

// By what is slow: the way into the isolation, becoming the program there, or the shell that is to hear of the end.
test.for(['root', 'userns', 'bwrap'] as const)(
  'a program in isolation (%s) is asked to end however early that is',
  async (kind, { skip }) => {
    skip(!(await isPossible(kind)), `this computer cannot isolate by ${kind}`);
    const ends = ['ip', 'setpriv', 'sh'].map((slow) =>
      withTempHome(async (dir) => {
        const job = startJob(dir, `exec setsid ${makeEntry(dir, kind)}`, await slowCommand(dir, slow));
        try {
          await waitFor('the first process inside', () => existsSync(join(dir, 'term')));
          return `${slow}: ${await job.stop()}`;
        } finally {
          await killProcessesOf(dir);
        }
      }),
    );
    expect(await Promise.all(ends)).toEqual(['ip: SIGTERM', 'setpriv: SIGTERM', 'sh: SIGTERM']);
  },
);
