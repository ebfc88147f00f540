import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { copyFileSync, existsSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { killProcessesOf, processesOf } from '../../test/support/leaks.ts';
import { withTempHome } from '../../test/support/temp-home.ts';
import { waitFor } from '../../test/support/wait-for.ts';
import { enterConf } from '../remote/isolation/enter-settings.ts';
import type { IsolationKind } from '../remote/isolation/kinds.ts';
import { hasErrno } from '../shared/errors.ts';
import { identifyProcess } from '../shared/process-identity.ts';

const run = promisify(execFile);

/** What a job is made of besides its folder. */
interface JobParts {
  readonly enter: string;
  readonly isIsolated?: boolean;
  /** Default: it sleeps. */
  readonly program?: string;
  readonly env?: NodeJS.ProcessEnv;
}

/** A job, entered as told. What this gives says when it runs, ends it, and reads how it ended. */
function startJob(dir: string, { enter, isIsolated = false, program = 'exec sleep 1000', env = process.env }: JobParts) {
  const runner = join(dir, 'runner.sh');
  copyFileSync(new URL('runner.sh', import.meta.url), runner);
  writeFileSync(
    join(dir, 'settings'),
    `svc_workdir='${dir}'\nsvc_waits=\nsvc_isolated=${isIsolated ? 'yes' : ''}\nsvc_enter() { ${enter} "$@"; }\n`,
  );
  writeFileSync(join(dir, 'env'), '');
  writeFileSync(join(dir, 'run.sh'), `${program}\n`);
  spawn('sh', [runner, 'start', dir], { stdio: 'ignore', env });
  const record = (): string => (existsSync(join(dir, 'status')) ? readFileSync(join(dir, 'status'), 'utf8') : '');
  return {
    begun: () => waitFor('the program to begin', () => record().includes('phase=run')),
    ended: () => waitFor('the job to end', () => record().includes('phase=ended')),
    async stop(): Promise<string> {
      await run('sh', [runner, 'stop', dir, '20000'], { env });
      return /^signal=(.*)$/m.exec(record())?.[1] ?? 'none';
    },
  };
}

test('a program that is asked to end before it has a session of its own is asked once it has', async () => {
  await withTempHome(async (dir) => {
    // As on a machine that is slow to start processes.
    const job = startJob(dir, { enter: 'sleep 1; exec setsid' });
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
  return `sh '${join(dir, 'enter.sh')}'`;
}

/** Makes a command take a second longer, always or as told. */
async function slowCommand(dir: string, name: string, pause = 'sleep 1'): Promise<NodeJS.ProcessEnv> {
  const { stdout } = await run('/bin/sh', ['-c', 'command -v "$1"', 'sh', name]);
  mkdirSync(join(dir, 'bin'), { recursive: true });
  writeFileSync(join(dir, 'bin', name), `#!/bin/sh\n${pause}\nexec ${stdout.trim()} "$@"\n`, { mode: 0o755 });
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
        const job = startJob(dir, { enter: `exec setsid ${makeEntry(dir, kind)}`, isIsolated: true, env: await slowCommand(dir, slow) });
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

/** Ends with its first SIGTERM and says so. */
const listener = `trap 'echo told > told; exit 0' TERM
echo begun > begun
sleep 1000 &
wait`;

test.for(['root', 'userns', 'bwrap'] as const)(
  'a program in isolation (%s) that begins before it is known who takes SIGTERM for it hears of the end as well',
  async (kind, { skip }) => {
    skip(!(await isPossible(kind)), `this computer cannot isolate by ${kind}`);
    await withTempHome(async (dir) => {
      // Slow are the shell that is to hear of it and the word of who takes it.
      await slowCommand(dir, 'mv', 'case $* in *term) sleep 2 ;; esac');
      const env = await slowCommand(dir, 'sh', 'case $* in *--inside*) sleep 1 ;; esac');
      const job = startJob(dir, { enter: `exec setsid ${makeEntry(dir, kind)}`, isIsolated: true, program: listener, env });
      try {
        const isInside = (): boolean => processesOf(dir).some(({ command }) => /^\/bin\/sh .* --inside /.test(command));
        await waitFor('a shell inside', isInside, { everyMs: 5 });
        await job.stop();
        expect(existsSync(join(dir, 'told'))).toBe(existsSync(join(dir, 'begun')));
      } finally {
        await killProcessesOf(dir);
      }
    });
  },
);

/** A shell that this computer has, as what `sh` is. */
async function asShell(dir: string, shell: string): Promise<NodeJS.ProcessEnv | undefined> {
  const found = await run('/bin/sh', ['-c', 'command -v "$1"', 'sh', shell]).catch(() => undefined);
  if (found === undefined) return undefined;
  mkdirSync(join(dir, 'bin'));
  symlinkSync(found.stdout.trim(), join(dir, 'bin', 'sh'));
  return { ...process.env, PATH: `${join(dir, 'bin')}:${process.env['PATH']}` };
}

test.for(['dash', 'bash'])('a program in isolation hears of the end where the shell is %s', async (shell, { skip }) => {
  skip(!(await isPossible('root')), 'this computer cannot isolate by root');
  await withTempHome(async (dir) => {
    const env = await asShell(dir, shell);
    if (env === undefined) return skip(`this computer has no ${shell}`);
    const job = startJob(dir, { enter: `exec setsid ${makeEntry(dir, 'root')}`, isIsolated: true, program: listener, env });
    try {
      await waitFor('the program to begin', () => existsSync(join(dir, 'begun')));
      await job.stop();
      expect(existsSync(join(dir, 'told'))).toBe(true);
    } finally {
      await killProcessesOf(dir);
    }
    return undefined;
  });
});

test('a connection through the way in goes on while the program finishes its answer after SIGTERM', async ({ skip }) => {
  skip(!(await isPossible('root')), 'this computer cannot isolate by root');
  await withTempHome(async (dir) => {
    const server = `let last;
require('net').createServer((socket) => (last = socket).write('begun ')).listen(8080);
process.on('SIGTERM', () => setTimeout(() => last.end('finished', () => process.exit(0)), 300));`;
    writeFileSync(join(dir, 'server.cjs'), server);
    const program = `exec '${process.execPath}' server.cjs`;
    const job = startJob(dir, { enter: `exec setsid ${makeEntry(dir, 'root')}`, isIsolated: true, program });
    try {
      const socket = await waitFor('a connection to the program', async () => {
        const attempt = connect({ path: join(dir, 'way-in.sock'), allowHalfOpen: true });
        attempt.write('8080\n');
        const first = await once(attempt, 'data').catch(() => ['']);
        return String(first[0]).startsWith('OK') && attempt;
      });
      const rest = text(socket);
      await job.stop();
      expect(await rest).toContain('finished');
    } finally {
      await killProcessesOf(dir);
    }
  });
});

test('a job of an earlier start of the machine, or whose pid is another process by now, takes nobody with it', async () => {
  await withTempHome(async (dir) => {
    const job = startJob(dir, { enter: 'exec setsid', program: 'exit 0' });
    await job.ended();
    const other = spawn('sleep', ['1000'], { detached: true, stdio: 'ignore' });
    try {
      const boot = readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();
      for (const [ofBoot, ticks] of [
        [boot, '1'],
        ['earlier', identifyProcess(other.pid ?? 0)?.startTicks],
      ] as const) {
        writeFileSync(join(dir, 'status'), `phase=run\nboot=${ofBoot}\nrunner=${other.pid} 1\nprogram=${other.pid} ${ticks}\n`);
        await job.stop();
        expect(existsSync(`/proc/${other.pid}`)).toBe(true);
      }
      expect(other.signalCode).toBe(null);
    } finally {
      other.kill('SIGKILL');
    }
  });
});
