import { deepStrictEqual, ok, rejects, strictEqual } from 'node:assert/strict';
import {
  chmodSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { systemClock } from '../shared/clock.ts';
import type { Remote } from './remote.ts';

/** A behaviour that every remote must show. Fails by throwing. */
interface RemoteCase {
  readonly name: string;
  /** Busybox's find can list neither removed nor changed files: there every copy sends all files again. */
  readonly needsGnuFind?: boolean;
  readonly run: (remote: Remote) => Promise<void>;
}

/** Behaviour on a machine with a POSIX shell and basic tools, without Python. Each case gets a machine of its own. */
export const remoteCases: readonly RemoteCase[] = [
  {
    name: 'a command returns its output and exit code and receives its arguments unchanged',
    async run(remote) {
      const odd = ['a b', "it's", '$HOME', '"', '\\', '*', 'line\nline', ''];
      const result = await remote.exec(['sh', '-c', 'printf "[%s]" "$@"; echo problem >&2; exit 3', 'sh', ...odd]);
      deepStrictEqual(result, { exitCode: 3, stdout: odd.map((one) => `[${one}]`).join(''), stderr: 'problem\n' });
    },
  },
  {
    name: 'a command receives its input, folder and variables',
    async run(remote) {
      await remote.exec(['mkdir', '-p', `${remote.baseDir}/sub`]);
      const options = { input: 'typed\n', cwd: `${remote.baseDir}/sub`, env: { ODD: "a'b\nc" } };
      const { stdout } = await remote.exec(['sh', '-c', 'cat; pwd; printf %s "$ODD"'], options);
      strictEqual(stdout, `typed\n${remote.baseDir}/sub\na'b\nc`);
    },
  },
  {
    name: "a command sees the machine's own environment",
    async run(remote) {
      for (const [name, value] of Object.entries(remote.environment)) {
        strictEqual((await remote.exec(['sh', '-c', `printf %s "$${name}"`])).stdout, value);
      }
    },
  },
  {
    name: 'a missing or signalled command returns the exit code that a shell would return',
    async run(remote) {
      strictEqual((await remote.exec(['no-such-command-here'])).exitCode, 127);
      strictEqual((await remote.exec(['sh', '-c', 'kill -9 $$'])).exitCode, 137);
    },
  },
  {
    name: 'a timed-out command is killed together with its child processes',
    async run(remote) {
      const script = 'sleep 300 & echo $! > "$1"; sleep 300';
      let pid = '';
      // A command that the timeout killed before its start proves nothing. Try again with more time.
      for (let timeoutMs = 500; pid === '' && timeoutMs < patienceMs; timeoutMs *= 4) {
        strictEqual((await remote.exec(['sh', '-c', script, 'sh', `${remote.baseDir}/pid`], { timeoutMs })).exitCode, 124);
        pid = (await remote.readFile(`${remote.baseDir}/pid`)) ?? '';
      }
      await untilGone(remote, pid);
    },
  },
  {
    name: 'a cancelled command is killed and the call fails',
    async run(remote) {
      const stop = new AbortController();
      const running = remote.exec(['sh', '-c', 'echo $$ > "$1"; sleep 300', 'sh', `${remote.baseDir}/pid`], { signal: stop.signal });
      const pid = await untilContent(remote, `${remote.baseDir}/pid`);
      stop.abort();
      await rejects(running);
      await untilGone(remote, pid);
    },
  },
  {
    name: 'background processes of a command do not delay its result',
    async run(remote) {
      const { stdout } = await remote.exec(['sh', '-c', 'sleep 300 & echo $!']);
      strictEqual((await remote.exec(['sh', '-c', 'kill -9 "$1"', 'sh', stdout.trim()])).exitCode, 0);
    },
  },
  {
    name: 'a detached command continues after the call',
    async run(remote) {
      const file = `${remote.baseDir}/written`;
      strictEqual((await remote.exec(['sh', '-c', 'sleep 0.2; echo done > "$1"', 'sh', file], { detached: true })).exitCode, 0);
      strictEqual(await untilContent(remote, file), 'done\n');
    },
  },
  {
    name: 'each output is cut at 1 MiB',
    async run(remote) {
      const { stdout, exitCode } = await remote.exec(['sh', '-c', 'head -c 3000000 /dev/zero | tr "\\0" x']);
      deepStrictEqual([exitCode, stdout.length], [0, 1_048_576]);
    },
  },
  {
    name: 'writing a file sets content and mode and replaces the old file atomically',
    async run(remote) {
      const path = `${remote.baseDir}/deep/er/file`;
      strictEqual(await remote.readFile(path), undefined);
      await remote.writeFile(path, 'first');
      strictEqual((await remote.exec(['stat', '-c', '%a', path])).stdout, '600\n');
      await remote.writeFile(path, 'sécond\n', 0o755);
      strictEqual(await remote.readFile(path), 'sécond\n');
      strictEqual((await remote.exec(['stat', '-c', '%a', path])).stdout, '755\n');
      strictEqual((await remote.exec(['ls', `${remote.baseDir}/deep/er`])).stdout, 'file\n');
    },
  },
  {
    name: 'copying makes a folder equal: contents, modes, times, links; extra files are removed',
    needsGnuFind: true,
    async run(remote) {
      await withLocalDir(async (dir) => {
        const target = `${remote.baseDir}/copy`;
        mkdirSync(join(dir, 'empty'));
        mkdirSync(join(dir, 'sub/deep'), { recursive: true });
        writeFileSync(join(dir, 'sub/deep/program'), '#!/bin/sh\n');
        chmodSync(join(dir, 'sub/deep/program'), 0o755);
        writeFileSync(join(dir, 'odd "name\'\n$x'), 'odd');
        symlinkSync('sub/deep', join(dir, 'link'));
        utimesSync(join(dir, 'sub/deep/program'), 1_000_000_000, 1_000_000_000);
        chmodSync(join(dir, 'empty'), 0o550);
        await remote.copyTo(dir, target);
        deepStrictEqual(await listing(remote, target), expectedListing(dir));

        writeFileSync(join(dir, 'sub/deep/program'), '#!/bin/sh\necho new\n');
        rmSync(join(dir, 'odd "name\'\n$x'));
        rmSync(join(dir, 'link'));
        mkdirSync(join(dir, 'link'));
        await remote.exec(['sh', '-c', 'mkdir "$1/extra"; echo x > "$1/extra/file"', 'sh', target]);
        await remote.copyTo(dir, target);
        deepStrictEqual(await listing(remote, target), expectedListing(dir));
      });
    },
  },
  {
    name: 'a repeated copy does not touch unchanged files',
    needsGnuFind: true,
    async run(remote) {
      await withLocalDir(async (dir) => {
        writeFileSync(join(dir, 'same'), 'same');
        // A new file may get the inode of a removed one, but not its ctime.
        const readStat = async (): Promise<string> => (await remote.exec(['stat', '-c', '%i %z', `${remote.baseDir}/copy/same`])).stdout;
        await remote.copyTo(dir, `${remote.baseDir}/copy`);
        const before = await readStat();
        await remote.copyTo(dir, `${remote.baseDir}/copy`);
        strictEqual(await readStat(), before);
      });
    },
  },
  {
    name: 'a single file can be copied',
    async run(remote) {
      await withLocalDir(async (dir) => {
        writeFileSync(join(dir, 'one'), 'content', { mode: 0o640 });
        await remote.copyTo(join(dir, 'one'), `${remote.baseDir}/new/place`);
        strictEqual(await remote.readFile(`${remote.baseDir}/new/place`), 'content');
      });
    },
  },
  {
    name: 'a cancelled copy fails',
    async run(remote) {
      await withLocalDir(async (dir) => {
        await rejects(remote.copyTo(dir, `${remote.baseDir}/copy`, { signal: AbortSignal.abort() }));
      });
    },
  },
  {
    name: 'follow waits for the file, yields exact bytes from the offset and stops on abort',
    async run(remote) {
      const path = `${remote.baseDir}/log`;
      const stop = new AbortController();
      const chunks: Buffer[] = [];
      const following = (async () => {
        for await (const chunk of remote.follow(path, 3, stop.signal)) {
          chunks.push(chunk);
          if (Buffer.concat(chunks).includes('end')) stop.abort();
        }
      })();
      // Not text, and split within a character over several writes.
      await remote.exec(['sh', '-c', 'printf "abc\\303" > "$1"; sleep 0.3; printf "\\251\\377\\000end" >> "$1"', 'sh', path]);
      await following;
      deepStrictEqual(Buffer.concat(chunks), Buffer.from([0xc3, 0xa9, 0xff, 0x00, 0x65, 0x6e, 0x64]));
    },
  },
  {
    name: 'watch reports a file that appears, changes or is removed, also in a folder created later',
    async run(remote) {
      const stop = new AbortController();
      const dir = `${remote.baseDir}/watched`;
      let calls = 0;
      remote.watch(`${dir}/file`, () => (calls += 1), stop.signal);
      try {
        for (const content of ['first', 'second', 'third', undefined, 'fourth']) {
          const before = calls;
          if (content === undefined) await remote.exec(['rm', `${dir}/file`]);
          else await remote.writeFile(`${dir}/file`, content);
          await until(() => calls > before, `a call after the change to ${content}`);
          // Notifications of the same change may still arrive.
          await systemClock.sleep(300);
        }
      } finally {
        stop.abort();
      }
    },
  },
];

/** Loaded machines show changes late; on others no case waits that long. */
const patienceMs = 90_000;

async function until(isSo: () => boolean | Promise<boolean>, what: string): Promise<void> {
  const deadline = systemClock.monotonic() + patienceMs;
  while (!(await isSo())) {
    if (systemClock.monotonic() > deadline) throw new Error(`waited in vain for ${what}`);
    await systemClock.sleep(20);
  }
}

async function untilContent(remote: Remote, path: string): Promise<string> {
  let content: string | undefined;
  await until(async () => ((content = await remote.readFile(path)) ?? '') !== '', `content of ${path}`);
  return content ?? '';
}

/** A zombie counts as ended: this test cannot see whether its parent has reaped it. */
async function untilGone(remote: Remote, pid: string): Promise<void> {
  ok(/^\d+\s*$/.test(pid), `no pid: '${pid}'`);
  await until(async () => {
    const stat = await remote.readFile(`/proc/${pid.trim()}/stat`);
    return stat === undefined || /\) [ZX] /.test(stat);
  }, `process ${pid.trim()} to end`);
}

async function withLocalDir(use: (dir: string) => Promise<void>): Promise<void> {
  const dir = mkdtempSync(join(tmpdir(), 'svc-conformance-'));
  try {
    await use(dir);
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
}

/** Per entry: path, kind, mode, mtime in seconds, and content or target. */
async function listing(remote: Remote, dir: string): Promise<readonly string[]> {
  const script = `cd "$1" && find . -mindepth 1 ! -type l -printf '%P|%y|%m|%Ts|' -a \\( -type f -a -exec sh -c 'cat "$1" | od -An -tx1 -v | tr -d " \\n"' sh {} \\; -o -true \\) -printf '\\0' -o -type l -printf '%P|%y|%l\\0'`;
  const { stdout, exitCode, stderr } = await remote.exec(['sh', '-c', script, 'sh', dir]);
  strictEqual(exitCode, 0, stderr);
  return stdout
    .split('\0')
    .slice(0, -1)
    .toSorted((a, b) => a.localeCompare(b));
}

function expectedListing(dir: string): readonly string[] {
  const describe = (path: string): readonly string[] => {
    const stats = lstatSync(join(dir, path));
    if (stats.isSymbolicLink()) return [`${path}|l|${readlinkSync(join(dir, path))}`];
    const head = `${path}|${stats.isDirectory() ? 'd' : 'f'}|${(stats.mode & 0o7777).toString(8)}|${Math.floor(stats.mtimeMs / 1_000)}`;
    if (!stats.isDirectory()) return [`${head}|${readFileSync(join(dir, path)).toString('hex')}`];
    return [`${head}|`, ...readdirSync(join(dir, path)).flatMap((name) => describe(`${path}/${name}`))];
  };
  return readdirSync(dir)
    .flatMap(describe)
    .toSorted((a, b) => a.localeCompare(b));
}
