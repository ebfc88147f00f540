import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { copyFileSync, existsSync, mkdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { dirname, join } from 'node:path';
import { text } from 'node:stream/consumers';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { killProcessesOf, processesOf } from '../../test/support/leaks.ts';
import { needs, pathOf } from '../../test/support/needs.ts';
import { signalAll } from '../../test/support/signal-all.ts';
import { withTempHome } from '../../test/support/temp-home.ts';
import { waitFor } from '../../test/support/wait-for.ts';
import { enterConf } from '../remote/isolation/enter-settings.ts';
import { parseJobRecord } from '../remote/job-record.ts';
import type { IsolationKind } from '../remote/isolation/kinds.ts';
import { hasErrno } from '../shared/errors.ts';
import { identifyProcess } from '../shared/system/process-identity.ts';

const run = promisify(execFile);

/** Parts of a job besides its folder. */
interface JobParts {
  readonly enter: string;
  readonly isIsolated?: boolean;
  /** Default: sleeps. */
  readonly program?: string;
  readonly env?: NodeJS.ProcessEnv;
  /** Limit of the kept output in bytes. Default: the runner's own limit. */
  readonly logLimit?: number;
}

const nothingRunsIn = (dir: string): Promise<boolean> =>
  waitFor('everything to end', () => processesOf(dir).length === 0, { describe: () => processesOf(dir) });

/** Runs a test with a folder of its own, and checks that no process is left in it. */
async function inFolder<Result>(use: (dir: string) => Promise<Result>): Promise<Result> {
  return withTempHome(async (dir) => {
    try {
      const result = await use(dir);
      await nothingRunsIn(dir);
      return result;
    } finally {
      await killProcessesOf(dir);
    }
  });
}

/** Folders of a machine below the test's folder. */
const foldersIn = (dir: string) => ({
  machine: join(dir, 'machine'),
  base: join(dir, 'machine/base'),
  job: join(dir, 'machine/base/jobs/job'),
});

/** Starts a job with the given `enter` command. The result reads its record, reports when it runs, and ends it. */
function startJob(dir: string, { enter, isIsolated = false, program = 'exec sleep 1000', env = process.env, logLimit }: JobParts) {
  const { base, job } = foldersIn(dir);
  mkdirSync(job, { recursive: true });
  const runner = join(job, 'runner.sh');
  copyFileSync(new URL('runner.sh', import.meta.url), runner);
  writeFileSync(
    join(job, 'settings'),
    `svc_workdir='${base}'\nsvc_waits=\nsvc_isolated=${isIsolated ? 'yes' : ''}\nsvc_enter() { ${enter} "$@"; }\n${logLimit === undefined ? '' : `svc_log_limit=${logLimit}\n`}`,
  );
  writeFileSync(join(job, 'env'), '');
  writeFileSync(join(job, 'run.sh'), `${program}\n`);
  spawn('sh', [runner, 'start', job], { stdio: 'ignore', env });
  const record = (): string => (existsSync(join(job, 'status')) ? readFileSync(join(job, 'status'), 'utf8') : '');
  return {
    record,
    begun: () => waitFor('the program to begin', () => record().includes('phase=run')),
    ended: () => waitFor('the job to end', () => record().includes('phase=ended')),
    async stop(): Promise<string> {
      await run('sh', [runner, 'stop', job, '60000'], { env });
      return /^signal=(.*)$/m.exec(record())?.[1] ?? 'none';
    },
  };
}

test('a program that is stopped before its session exists gets SIGTERM later', async () => {
  await inFolder(async (dir) => {
    // Simulates a machine that is slow to start processes.
    const job = startJob(dir, { enter: 'sleep 1; exec setsid' });
    await job.begun();
    expect(await job.stop()).toBe('SIGTERM');
  });
});

/** Prepares a folder for entering an isolation of this kind; returns the command. */
function makeEntry(dir: string, isolation: IsolationKind): string {
  const { machine, base } = foldersIn(dir);
  mkdirSync(base, { recursive: true });
  mkdirSync(join(machine, 'tmp'), { mode: 0o1777 });
  mkdirSync(join(dir, 'bin'), { recursive: true });
  for (const file of ['enter.sh', 'confine.sh', 'forwarder.mjs']) copyFileSync(new URL(file, import.meta.url), join(machine, file));
  const keep = [join(dir, 'bin'), dirname(process.execPath)].filter((path) => path.startsWith('/tmp/'));
  const settings = { node: process.execPath, socket: join(dir, 'way-in.sock'), proxySocket: '', egress: '', keep, hide: [machine] };
  writeFileSync(join(machine, 'enter.conf'), enterConf({ isolation, outbound: 'none', ...settings }));
  return `sh '${join(machine, 'enter.sh')}'`;
}

/** Delays a command by a second, or as given in `pause`. */
async function slowCommand(dir: string, name: string, pause = 'sleep 1'): Promise<NodeJS.ProcessEnv> {
  const { stdout } = await run('/bin/sh', ['-c', 'command -v "$1"', 'sh', name]);
  mkdirSync(join(dir, 'bin'), { recursive: true });
  writeFileSync(join(dir, 'bin', name), `#!/bin/sh\n${pause}\nexec ${stdout.trim()} "$@"\n`, { mode: 0o755 });
  return { ...process.env, PATH: `${join(dir, 'bin')}:${process.env['PATH']}` };
}

/** Whether this computer supports that kind of isolation. */
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

/** The command that starts loopback inside an isolation on this computer. */
const loopbackTool = pathOf('ip') === undefined ? 'perl' : 'ip';

/** A program that exits on its first SIGTERM and records it. */
const listener = `trap 'echo told > told; exit 0' TERM
echo begun > begun
sleep 1000 &
wait`;

for (const kind of ['root', 'userns', 'bwrap'] as const) {
  needs(kind === 'bwrap' ? 'bwrap' : [], () => {
    // One run per slow step: entering the isolation, starting the program inside, or the shell that must receive
    // SIGTERM.
    test(`a program in isolation (${kind}) gets SIGTERM however early it comes`, async ({ skip }) => {
      skip(!(await isPossible(kind)), `this computer cannot isolate by ${kind}`);
      const ends = [loopbackTool, 'setpriv', 'sh'].map((slow) =>
        inFolder(async (dir) => {
          const job = startJob(dir, { enter: `exec setsid ${makeEntry(dir, kind)}`, isIsolated: true, env: await slowCommand(dir, slow) });
          await waitFor('the first process inside', () => existsSync(join(foldersIn(dir).job, 'term')));
          return `${slow}: ${await job.stop()}`;
        }),
      );
      expect(await Promise.all(ends)).toEqual([`${loopbackTool}: SIGTERM`, 'setpriv: SIGTERM', 'sh: SIGTERM']);
    });

    test(`a program in isolation (${kind}) gets SIGTERM sent before its receiver is recorded`, async ({ skip }) => {
      skip(!(await isPossible(kind)), `this computer cannot isolate by ${kind}`);
      await inFolder(async (dir) => {
        // Slow steps: the shell that must receive SIGTERM, and the record of the process that receives it.
        await slowCommand(dir, 'mv', 'case $* in *term) sleep 2 ;; esac');
        const env = await slowCommand(dir, 'sh', 'case $* in *--inside*) sleep 1 ;; esac');
        const job = startJob(dir, { enter: `exec setsid ${makeEntry(dir, kind)}`, isIsolated: true, program: listener, env });
        const isInside = (): boolean => processesOf(dir).some(({ command }) => /^\/bin\/sh .* --inside /.test(command));
        // On a busy machine the program may have begun before the first check.
        const hasBegun = (): boolean => existsSync(join(foldersIn(dir).base, 'begun'));
        await waitFor('a shell inside', () => isInside() || hasBegun(), { everyMs: 5 });
        await job.stop();
        expect(existsSync(join(foldersIn(dir).base, 'told'))).toBe(existsSync(join(foldersIn(dir).base, 'begun')));
      });
    });
  });
}

/** An environment in which `sh` is the given shell; undefined when this computer lacks it. */
async function asShell(dir: string, shell: string): Promise<NodeJS.ProcessEnv | undefined> {
  const found = await run('/bin/sh', ['-c', 'command -v "$1"', 'sh', shell]).catch(() => undefined);
  if (found === undefined) return undefined;
  mkdirSync(join(dir, 'bin'), { recursive: true });
  symlinkSync(found.stdout.trim(), join(dir, 'bin', 'sh'));
  return { ...process.env, PATH: `${join(dir, 'bin')}:${process.env['PATH']}` };
}

test.for(['dash', 'bash'])('a program in isolation gets SIGTERM where the shell is %s', async (shell, { skip }) => {
  skip(!(await isPossible('root')), 'this computer cannot isolate by root');
  await inFolder(async (dir) => {
    const env = await asShell(dir, shell);
    if (env === undefined) return skip(`this computer has no ${shell}`);
    const job = startJob(dir, { enter: `exec setsid ${makeEntry(dir, 'root')}`, isIsolated: true, program: listener, env });
    await waitFor('the program to begin', () => existsSync(join(foldersIn(dir).base, 'begun')));
    await job.stop();
    expect(existsSync(join(foldersIn(dir).base, 'told'))).toBe(true);
    return undefined;
  });
});

test('an inbound connection continues while the program finishes its answer after SIGTERM', async ({ skip }) => {
  skip(!(await isPossible('root')), 'this computer cannot isolate by root');
  await inFolder(async (dir) => {
    const server = `let last;
require('net').createServer((socket) => (last = socket).write('begun ')).listen(8080);
process.on('SIGTERM', () => setTimeout(() => last.end('finished', () => process.exit(0)), 300));`;
    mkdirSync(foldersIn(dir).base, { recursive: true });
    writeFileSync(join(foldersIn(dir).base, 'server.cjs'), server);
    const program = `exec '${process.execPath}' server.cjs`;
    const job = startJob(dir, { enter: `exec setsid ${makeEntry(dir, 'root')}`, isIsolated: true, program });
    const socket = await waitFor('a connection to the program', async () => {
      const attempt = connect({ path: join(dir, 'way-in.sock'), allowHalfOpen: true });
      attempt.write('8080\n');
      const first = await once(attempt, 'data').catch(() => ['']);
      return String(first[0]).startsWith('OK') && attempt;
    });
    const rest = text(socket);
    await job.stop();
    expect(await rest).toContain('finished');
  });
});

test('stopping a job with another boot ID or reused pid kills no other process', async () => {
  await inFolder(async (dir) => {
    const job = startJob(dir, { enter: 'exec setsid', program: 'exit 0' });
    await job.ended();
    const other = spawn('sleep', ['1000'], { detached: true, stdio: 'ignore' });
    try {
      const boot = readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();
      for (const [ofBoot, ticks] of [
        [boot, '1'],
        ['earlier', identifyProcess(other.pid ?? 0)?.startTicks],
      ] as const) {
        writeFileSync(
          join(foldersIn(dir).job, 'status'),
          `phase=run\nboot=${ofBoot}\nrunner=${other.pid} 1\nprogram=${other.pid} ${ticks}\n`,
        );
        await job.stop();
        expect(existsSync(`/proc/${other.pid}`)).toBe(true);
      }
      expect(other.signalCode).toBe(null);
    } finally {
      other.kill('SIGKILL');
    }
  });
});

/** Disk usage of a file, bytes. */
const spaceOf = (path: string): number => statSync(path).blocks * 512;

const mebibyte = 1_048_576;

test('a program that prints endlessly keeps its newest output and a bounded log', async () => {
  await inFolder(async (dir) => {
    const program = `yes 'a line' | head -c ${40 * mebibyte}; echo; echo the last line`;
    const job = startJob(dir, { enter: 'exec setsid', program, logLimit: 4 * mebibyte });
    await job.ended();
    const log = join(foldersIn(dir).job, 'job.log');
    const kept = (): string => readFileSync(log, 'latin1').replaceAll('\0', '');
    // The older half may be freed just after the last line was written.
    await waitFor('the log to say what is gone', () => /^\[svc \S+\] older output is gone: \d+ bytes\n/.test(kept()));
    expect(spaceOf(log)).toBeLessThan(9 * mebibyte);
    // On a busy machine the record of the end does not wait for the last line: it polls at most 100 times.
    await waitFor('the last line', () => /\nthe last line\n\[svc \S+\] run ended with exit code 0 after \d+ s\n$/.test(kept()), {
      describe: () => kept().slice(-1_000),
    });
  });
});

test('a job that cannot create a log pipe is refused with the reason', async () => {
  await inFolder(async (dir) => {
    const env = await slowCommand(dir, 'mkfifo', 'exit 1');
    const job = startJob(dir, { enter: 'exec setsid', program: 'echo begun', env });
    await job.ended();
    expect(readFileSync(join(foldersIn(dir).job, 'job.log'), 'utf8')).toMatch(
      /^\[svc \S+\] the job was not started: no named pipe for its log/,
    );
    expect(readFileSync(join(foldersIn(dir).job, 'status'), 'utf8')).toMatch(/\nexit=73\nsignal=\nfailed=setup\n/);
  });
});

test('a job on a file system without named pipes still has a bounded log', async () => {
  await inFolder(async (dir) => {
    const env = await slowCommand(dir, 'mkfifo', 'case "$*" in *"/log.pipe") exit 1 ;; esac');
    const program = `yes 'a line' | head -c ${20 * mebibyte}`;
    const job = startJob(dir, { enter: 'exec setsid', program, env, logLimit: 4 * mebibyte });
    await job.ended();
    expect(spaceOf(join(foldersIn(dir).job, 'job.log'))).toBeLessThan(9 * mebibyte);
  });
});

test('a program survives a full log disk, and its end is recorded', async ({ skip }) => {
  await inFolder(async (dir) => {
    const { machine } = foldersIn(dir);
    mkdirSync(machine);
    const mounted = await run('mount', ['-t', 'tmpfs', '-o', 'size=8m', 'svc-test', machine]).catch(() => undefined);
    if (mounted === undefined) return skip('this user may not mount a small disk');
    try {
      const job = startJob(dir, { enter: 'exec setsid', program: `yes | head -c ${40 * mebibyte}; echo finished > "${dir}/finished"` });
      await job.ended();
      expect(readFileSync(join(dir, 'finished'), 'utf8')).toBe('finished\n');
      // One of the two lines is written: when there is space again, or in place of output that was freed.
      const log = (): string => readFileSync(join(foldersIn(dir).job, 'job.log'), 'latin1');
      await waitFor('the log to say what is lost', () => /output is missing here: the disk was full|older output is gone/.test(log()));
    } finally {
      await run('umount', ['--lazy', machine]);
    }
    return undefined;
  });
});

test('after SIGKILL of runner and program, the log reader ends with the last writer', async () => {
  await inFolder(async (dir) => {
    const job = startJob(dir, { enter: 'exec setsid' });
    await job.begun();
    const { runner, program } = parseJobRecord(job.record()) ?? {};
    if (runner === undefined || program === undefined) throw new Error(`a record without processes: ${job.record()}`);
    signalAll([runner.pid, program.pid], 'SIGKILL');
    await expect(nothingRunsIn(dir)).resolves.toBe(true);
  });
});

test('a program survives the removal of its folder, and its log reader ends too', async () => {
  await inFolder(async (dir) => {
    const program = `rm -rf '${foldersIn(dir).job}'; yes 'a line' | head -c ${mebibyte}; echo finished > '${dir}/finished'`;
    startJob(dir, { enter: 'exec setsid', program });
    await waitFor('the program to finish', () => existsSync(join(dir, 'finished')));
    await expect(nothingRunsIn(dir)).resolves.toBe(true);
  });
});
