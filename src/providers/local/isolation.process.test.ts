import { spawnSync } from 'node:child_process';
import { accessSync, constants, existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { afterEach, expect, test } from 'vitest';
import { expectNoLeaks } from '../../../test/support/leaks.ts';
import { withTempHome } from '../../../test/support/temp-home.ts';
import { waitFor } from '../../../test/support/wait-for.ts';
import { systemClock } from '../../shared/clock.ts';
import { SvcError } from '../../shared/errors.ts';
import { homePaths } from '../../shared/paths.ts';
import { chooseIsolation } from './isolation.ts';

const path = process.env['PATH'];

afterEach(() => {
  process.env['PATH'] = path;
  delete process.env['SVC_LOCAL_ISOLATION'];
});

/** Makes only these commands available. */
function onlyCommands(dir: string, ...names: readonly string[]): void {
  mkdirSync(dir);
  for (const name of names) {
    const found = (path ?? '').split(':').find((folder) => fileExists(join(folder, name)));
    if (found !== undefined) symlinkSync(join(found, name), join(dir, name));
  }
  process.env['PATH'] = dir;
}

function fileExists(file: string): boolean {
  try {
    accessSync(file, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

test('without the tools there is no isolation; reasons and remedies are reported', async () => {
  await withTempHome(async (home) => {
    onlyCommands(join(home, 'bin'), 'sh', 'mkfifo', 'rm');
    const choice = await chooseIsolation({ paths: homePaths(home, 0), clock: systemClock }, 'auto');
    expect(choice).toMatchObject({ kind: 'none', outbound: 'host', isForced: false });
    expect(choice.refused).toContainEqual(['userns', 'unshare: not found']);
    expect(choice.refused).toContainEqual(['bwrap', 'bwrap: not found']);
    expect(choice.remedies.join()).toContain('apt-get install util-linux iproute2');
    // Failed tries leave no waiting process.
    await expectNoLeaks(home);
  });
});

test('a try removes folders of killed processes and keeps those of living ones', async () => {
  await withTempHome(async (home) => {
    onlyCommands(join(home, 'bin'), 'sh', 'mkfifo', 'rm');
    const paths = homePaths(home, 0);
    // A pid beyond the maximum (PID_MAX_LIMIT), and that of this process.
    const [abandoned, living] = [2 ** 23, process.pid].map((pid) => join(paths.runtimeDir, `try-${pid.toString(36)}-ab`));
    for (const dir of [abandoned, living]) mkdirSync(dir ?? '', { recursive: true });
    process.env['SVC_LOCAL_ISOLATION'] = 'bwrap';
    await chooseIsolation({ paths, clock: systemClock }, 'none').catch(() => undefined);
    expect([abandoned, living].map((dir) => existsSync(dir ?? ''))).toEqual([false, true]);
  });
});

test('a try whose process is killed leaves nothing behind', async () => {
  await withTempHome(async (home) => {
    const bin = join(home, 'bin');
    onlyCommands(bin, 'sh', 'mkfifo', 'rm', 'sleep');
    // Replaces `unshare`: it kills the trying process, and exits after that process has ended.
    writeFileSync(join(bin, 'unshare'), '#!/bin/sh\nkill -9 "$TRIER"\nwhile [ -d "/proc/$TRIER" ]; do sleep 0.02; done\nexit 1\n', {
      mode: 0o755,
    });
    const paths = homePaths(home, 0);
    const script = `process.env.TRIER = String(process.pid);
      const { chooseIsolation } = await import(${JSON.stringify(import.meta.resolve('./isolation.ts'))});
      const { homePaths } = await import(${JSON.stringify(import.meta.resolve('../../shared/paths.ts'))});
      const { systemClock } = await import(${JSON.stringify(import.meta.resolve('../../shared/clock.ts'))});
      await chooseIsolation({ paths: homePaths(${JSON.stringify(home)}, 0), clock: systemClock }, 'userns');`;
    const trier = spawnSync(process.execPath, ['--input-type=module', '-e', script], { env: { PATH: bin, SVC_HOME: home } });
    expect(trier.signal).toBe('SIGKILL');
    expect(await waitFor('its try to be gone', () => readdirSync(paths.runtimeDir).length === 0)).toBe(true);
  });
});

test('a forced isolation that does not work throws the reason', async () => {
  await withTempHome(async (home) => {
    onlyCommands(join(home, 'bin'), 'sh', 'mkfifo', 'rm');
    process.env['SVC_LOCAL_ISOLATION'] = 'userns';
    const failure = await chooseIsolation({ paths: homePaths(home, 0), clock: systemClock }, 'none').catch((error: unknown) => error);
    expect(failure).toBeInstanceOf(SvcError);
    expect(failure).toMatchObject({
      code: 'SVC_ISOLATION',
      message: expect.stringMatching(/'userns' .* does not work here: unshare: not found$/),
      hint: expect.stringMatching(/^Unset SVC_LOCAL_ISOLATION/),
    });
  });
});

test('an unknown isolation name is refused with the valid names', async () => {
  process.env['SVC_LOCAL_ISOLATION'] = 'magic';
  const failure = chooseIsolation({ paths: homePaths('/nowhere', 0), clock: systemClock }, 'auto');
  await expect(failure).rejects.toThrow("There is no isolation called 'magic' (there are: auto, root, userns, bwrap, none).");
});

// Must be the last test of this file: the process caches the isolation that works.
test('without iproute2, as in Debian base images, machines are still isolated', async ({ skip }) => {
  await withTempHome(async (home) => {
    const computer = { paths: homePaths(home, 0), clock: systemClock };
    const kind = process.getuid?.() === 0 ? 'root' : 'userns';
    const namespaces = kind === 'root' ? ['--net'] : ['--user', '--map-current-user', '--net'];
    skip(spawnSync('unshare', [...namespaces, 'true']).status !== 0, 'this computer refuses namespaces');
    // In the home folder, which the program sees: it does not see SVC_HOME, nor this computer's /tmp.
    const folder = mkdtempSync(join(homedir(), '.svc-commands-'));
    try {
      const commands = 'sh mkfifo rm mkdir mv cp cat sed readlink head sleep true unshare mount setpriv setsid perl';
      onlyCommands(join(folder, 'bin'), ...commands.split(' '));
      expect(await chooseIsolation(computer, kind)).toMatchObject({ kind, isForced: true });
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  });
});
