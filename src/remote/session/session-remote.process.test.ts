import { spawnSync } from 'node:child_process';
import { chmodSync, existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { withTempHome } from '../../../test/support/temp-home.ts';
import { SvcError } from '../../shared/errors.ts';
import { readRemoteFile, writeRemoteFile } from './session-remote.ts';
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

const shells = [['sh'], ['bash'], ['busybox', 'sh']].filter(([program = '']) => spawnSync(program, ['-c', 'true']).error === undefined);

describe.each(shells.map((shell) => ({ name: shell.join(' '), shell })))('$name', ({ shell }) => {
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
