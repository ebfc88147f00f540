import { spawnSync } from 'node:child_process';
import { accessSync, constants, existsSync, mkdirSync, readdirSync, symlinkSync, writeFileSync } from 'node:fs';
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

/** Leaves only these commands to be found. */
function onlyCommands(dir: string, ...names: readonly string[]): void {
  mkdirSync(dir);
  for (const name of names) {
    const found = (path ?? '').split(':').find((folder) => isThere(join(folder, name)));
    if (found !== undefined) symlinkSync(join(found, name), join(dir, name));
  }
  process.env['PATH'] = dir;
}

function isThere(file: string): boolean {
  try {
    accessSync(file, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

test('without the tools there is no isolation, and the reasons and remedies are told', async () => {
  await withTempHome(async (home) => {
    onlyCommands(join(home, 'bin'), 'sh', 'mkfifo', 'rm');
    const choice = await chooseIsolation({ paths: homePaths(home, 0), clock: systemClock }, 'auto');
    expect(choice).toMatchObject({ kind: 'none', outbound: 'host', isForced: false });
    expect(choice.refused).toContainEqual(['userns', 'unshare: not found']);
    expect(choice.refused).toContainEqual(['bwrap', 'bwrap: not found']);
    expect(choice.remedies.join()).toContain('apt-get install util-linux iproute2');
    // What was tried in vain leaves nobody waiting.
    await expectNoLeaks(home);
  });
});

test('what a process that was killed left of its try is removed by the next one, and what others try is left alone', async () => {
  await withTempHome(async (home) => {
    onlyCommands(join(home, 'bin'), 'sh', 'mkfifo', 'rm');
    const paths = homePaths(home, 0);
    // Larger than any pid can be (PID_MAX_LIMIT), and this process.
    const [abandoned, living] = [2 ** 23, process.pid].map((pid) => join(paths.runtimeDir, `try-${pid.toString(36)}-ab`));
    for (const dir of [abandoned, living]) mkdirSync(dir ?? '', { recursive: true });
    process.env['SVC_LOCAL_ISOLATION'] = 'bwrap';
    await chooseIsolation({ paths, clock: systemClock }, 'none').catch(() => undefined);
    expect([abandoned, living].map((dir) => existsSync(dir ?? ''))).toEqual([false, true]);
  });
});

test('a try whose process is killed meanwhile leaves nothing', async () => {
  await withTempHome(async (home) => {
    const bin = join(home, 'bin');
    onlyCommands(bin, 'sh', 'mkfifo', 'rm', 'sleep');
    // In the place of the program that makes namespaces: it kills who tries, and ends after it.
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

test('one that is forced and does not work is an error with the reason', async () => {
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

test('a name that is none is an error with those there are', async () => {
  process.env['SVC_LOCAL_ISOLATION'] = 'magic';
  const failure = chooseIsolation({ paths: homePaths('/nowhere', 0), clock: systemClock }, 'auto');
  await expect(failure).rejects.toThrow("There is no isolation called 'magic' (there are: auto, root, userns, bwrap, none).");
});
