import { spawnSync } from 'node:child_process';
import { chmodSync, existsSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { processesOf } from '../../../test/support/leaks.ts';
import { needs, type Tool } from '../../../test/support/needs.ts';
import { shellMachine, shells } from '../../../test/support/shell-machine.ts';
import { withTempHome } from '../../../test/support/temp-home.ts';
import { waitFor } from '../../../test/support/wait-for.ts';
import { systemClock } from '../../shared/clock.ts';
import { SvcError } from '../../shared/errors.ts';
import { readRemoteFile, watchRemoteFile, writeRemoteFile } from './session-remote.ts';
import type { SessionMachine } from './session-machine.ts';

/** A machine that runs each command locally in this shell; `env` is added to its environment. */
function machineWith(shell: readonly string[], env: Readonly<Record<string, string>> = {}): SessionMachine {
  return {
    name: 'here',
    host: 'here',
    async session({ argv, env: requestEnv, onStdout, onStderr }) {
      const [program = '', ...args] = [...shell, ...argv.slice(1)];
      // Bash ignores BASH_ENV when its input is a socket, which is the default.
      const { status, stdout, stderr } = spawnSync(program, args, {
        env: { ...process.env, LC_ALL: 'C', ...env, ...requestEnv },
        stdio: ['ignore', 'pipe', 'pipe'],
      });
      onStdout(stdout);
      // Messages differ between shells; those of BusyBox are in lower case.
      onStderr(Buffer.from(stderr.toString().toLowerCase()));
      return { exitCode: status ?? undefined, how: 'ended', isStarted: true, said: '' };
    },
    lost: (what) => new SvcError('SVC_PLACE_FAILED', what),
  };
}

for (const { shell, tools } of shells)
  needs(tools, () => {
    describe(`with ${shell.join(' ')}`, () => {
      test('an existing file is read, and missing differs from unreadable', async () => {
        await withTempHome(async (dir) => {
          writeFileSync(join(dir, 'file'), 'content');
          const machine = machineWith(shell);
          expect(await readRemoteFile(machine, join(dir, 'file'))).toBe('content');
          expect(await readRemoteFile(machine, join(dir, 'nothing'))).toBeUndefined();
          expect(await readRemoteFile(machine, join(dir, 'no-folder/nothing'))).toBeUndefined();
          await expect(readRemoteFile(machine, dir)).rejects.toMatchObject({ message: expect.stringContaining('could not be read') });
        });
      });

      test.skipIf(process.getuid?.() === 0)('a file in a folder without search permission is not reported as missing', async () => {
        await withTempHome(async (dir) => {
          mkdirSync(join(dir, 'closed'));
          chmodSync(join(dir, 'closed'), 0);
          const read = readRemoteFile(machineWith(shell), join(dir, 'closed/file'));
          await expect(read).rejects.toMatchObject({ message: expect.stringContaining('ermission denied') });
        });
      });
    });
  });

test('a machine with another language is understood', async () => {
  await withTempHome(async (dir) => {
    writeFileSync(
      join(dir, 'cat'),
      `#!/bin/sh\n[ "$LANGUAGE" = en ] && echo 'cat: write error: No space left on device' >&2 || echo 'cat: Schreibfehler: Auf dem Gerät ist kein Speicherplatz mehr verfügbar' >&2\nexit 1\n`,
      { mode: 0o755 },
    );
    const machine = machineWith(['sh'], { LANGUAGE: 'de', PATH: `${dir}${delimiter}${process.env['PATH']}` });
    await expect(writeRemoteFile(machine, join(dir, 'file'), 'content', 0o600)).rejects.toMatchObject({ code: 'SVC_NO_SPACE' });
  });
});

/**
 * Bash calls this before each command of a script. Before the command with this number, it creates or removes the file.
 */
const meddle = (number: number, file: string, change: string): string =>
  `n=0; trap '[ $((n += 1)) -ne ${number} ] || { ${change} "${file}"; : > "${file}.changed"; }' DEBUG`;

describe.each([
  { what: 'created', change: 'echo content >', isThereBefore: false },
  { what: 'removed', change: 'rm', isThereBefore: true },
])('a file that is $what', ({ change, isThereBefore }) => {
  test.each([1, 2, 3])('before step %i of a read is either read or missing', async (step) => {
    await withTempHome(async (dir) => {
      const file = join(dir, 'file');
      writeFileSync(join(dir, 'meddle'), meddle(step, file, change));
      if (isThereBefore) writeFileSync(file, 'content\n');
      expect(['content\n', undefined]).toContain(await readRemoteFile(machineWith(['bash'], { BASH_ENV: join(dir, 'meddle') }), file));
      expect(existsSync(`${file}.changed`)).toBe(true);
    });
  });
});

/** Watches a file; `calls`: how often it was reported so far. */
function watchFile(machine: SessionMachine, file: string) {
  let calls = 0;
  const over = new AbortController();
  const report = (): void => {
    calls += 1;
  };
  const watching = watchRemoteFile(() => Promise.resolve(machine), file, report, systemClock, over.signal);
  const end = async (): Promise<void> => {
    over.abort();
    await watching;
  };
  return { calls: () => calls, end };
}

/** What is `tail` on a machine; undefined: this computer's. */
const tails: readonly { readonly name: string; readonly tail: string | undefined; readonly tools: readonly Tool[] }[] = [
  { name: 'the tail of this computer', tail: undefined, tools: [] },
  { name: 'the tail of busybox', tail: 'exec busybox tail "$@"', tools: ['busybox'] },
  { name: 'a tail that cannot follow a name', tail: 'exit 1', tools: [] },
];

for (const { name, tail, tools } of tails)
  needs(tools, () => {
    test(`a file that appears, is replaced and is removed is reported with ${name}`, async () => {
      await withTempHome(async (dir) => {
        if (tail !== undefined) writeFileSync(join(dir, 'tail'), `#!/bin/sh\n${tail}\n`, { mode: 0o755 });
        const machine = shellMachine(['sh'], tail === undefined ? {} : { PATH: `${dir}${delimiter}${process.env['PATH']}` });
        const file = join(dir, 'folder/status');
        const watch = watchFile(machine, file);
        for (const content of ['one', 'two', 'two', undefined, 'three']) {
          const before = watch.calls();
          if (content === undefined) rmSync(file);
          else await writeRemoteFile(machine, file, content, 0o600);
          await waitFor(`a call after the change to ${content}`, () => watch.calls() > before);
        }
        await watch.end();
        // Watching began once, whatever tail there is.
        expect(machine.requests.filter(({ argv }) => argv.join(' ').includes('tail')).length).toBe(1);
      });
    });
  });

test('watching a file starts no process after its beginning', async () => {
  await withTempHome(async (dir) => {
    const file = join(dir, 'status');
    const machine = shellMachine(['sh'], { SVC_TEST_WATCH: dir });
    writeFileSync(file, 'one');
    const watch = watchFile(machine, file);
    await waitFor('the first report', () => watch.calls() > 0);
    const before = processesOf(dir);
    expect(before.map(({ command }) => command)).toContainEqual(expect.stringMatching(/^tail /));
    for (const content of ['two', 'three']) {
      const seen = watch.calls();
      await writeRemoteFile(machine, file, content, 0o600);
      await waitFor(`a call after the change to ${content}`, () => watch.calls() > seen);
    }
    await waitFor('the writers to end', () => processesOf(dir).length === before.length);
    expect(processesOf(dir)).toEqual(before);
    await watch.end();
    await waitFor('the tail to end', () => processesOf(dir).length === 0, { describe: () => processesOf(dir) });
  });
});
