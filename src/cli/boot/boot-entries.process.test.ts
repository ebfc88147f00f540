import { chmodSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { needs } from '../../../test/support/needs.ts';
import { withTempHome } from '../../../test/support/temp-home.ts';
import { runCommand } from '../../remote/run-command.ts';
import { systemClock } from '../../shared/clock.ts';
import { wholeEnv } from '../../shared/env.ts';
import { homePaths } from '../../shared/paths.ts';
import { type BootDeps, findBootEntry, installBootEntry, mentionsBoot, startInstalledUnit, uninstallBootEntry } from './boot-entries.ts';

const systemPath = '/usr/local/bin:/usr/bin:/bin';

/** A machine whose systemctl, loginctl and crontab are scripts that record their calls. */
interface Machine {
  readonly deps: BootDeps;
  readonly tool: (name: string, script: string) => void;
  readonly calls: () => readonly string[];
  readonly crontab: string;
}

async function withMachine(uid: number, use: (machine: Machine) => Promise<void>): Promise<void> {
  await withTempHome(async (root) => {
    const [tools, home, log, crontab] = [join(root, 'tools'), join(root, 'a 100% home'), join(root, 'calls'), join(root, 'crontab')];
    for (const folder of [tools, home]) mkdirSync(folder);
    writeFileSync(log, '');
    const tool = (name: string, script: string): void => {
      writeFileSync(join(tools, name), `#!/bin/sh\necho "${name} $*" >> ${log}\n${script}\n`);
      chmodSync(join(tools, name), 0o755);
    };
    tool(
      'crontab',
      `if [ "$1" = -l ]; then cat ${crontab} 2>/dev/null || { echo 'no crontab for ann' >&2; exit 1; }; else cat > ${crontab}; fi`,
    );
    tool('loginctl', 'exit 0');
    const variables: Readonly<Record<string, string>> = {
      PATH: `${tools}:${systemPath}`,
      USER: 'ann',
      XDG_CONFIG_HOME: join(root, 'config'),
      AWS_SECRET_ACCESS_KEY: 'sesame',
    };
    await use({
      deps: { paths: homePaths(home, uid), clock: systemClock, uid, env: (name) => variables[name], systemUnits: join(root, 'units') },
      tool,
      calls: () => readFileSync(log, 'utf8').split('\n').slice(0, -1),
      crontab,
    });
  });
}

const runningSystemd = 'if [ "$1" = is-system-running ]; then echo degraded; exit 1; fi';

test.for([
  [0, '', 'system-unit'],
  [1000, '--user ', 'user-unit'],
] as const)('user %i gets a unit, which starts the controller; uninstall removes it', async ([uid, user, kind]) => {
  await withMachine(uid, async ({ deps, tool, calls }) => {
    tool('systemctl', runningSystemd);
    expect(await startInstalledUnit(deps)).toBe(false);
    const entry = await installBootEntry(deps);
    expect(entry).toMatchObject({ kind, isCurrent: true });
    const text = readFileSync(entry.file ?? '', 'utf8');
    expect(text).toContain('Environment="SVC_HOME=');
    expect(text).not.toContain('sesame');
    expect(await startInstalledUnit(deps)).toBe(true);
    expect(await findBootEntry(deps)).toEqual(entry);
    expect(await uninstallBootEntry(deps)).toEqual(entry);
    expect(existsSync(entry.file ?? '')).toBe(false);
    expect(await findBootEntry(deps)).toBeUndefined();
    const linger = uid === 0 ? [] : ['loginctl enable-linger ann'];
    expect(calls().filter((line) => !line.startsWith('crontab'))).toEqual([
      'systemctl is-system-running',
      ...linger,
      `systemctl ${user}daemon-reload`,
      `systemctl ${user}enable ${entry.name}`,
      `systemctl ${user}start --no-block ${entry.name}`,
      `systemctl ${user}disable ${entry.name}`,
      `systemctl ${user}daemon-reload`,
    ]);
  });
});

test('a unit of another copy of svc does not start the controller', async () => {
  await withMachine(0, async ({ deps, tool }) => {
    tool('systemctl', runningSystemd);
    const { file } = await installBootEntry(deps);
    const text = readFileSync(file ?? '', 'utf8');
    writeFileSync(file ?? '', text.replace('/bin/sh "', '/bin/sh "/elsewhere'));
    expect(await findBootEntry(deps)).toMatchObject({ isCurrent: false });
    expect(await startInstalledUnit(deps)).toBe(false);
  });
});

test('a crontab that cannot be read is not written', async () => {
  await withMachine(1000, async ({ deps, tool, calls }) => {
    tool('systemctl', 'echo offline; exit 1');
    for (const broken of ['echo "Input/output error" >&2; exit 1', 'exit 2', 'printf "caf\\351\\n"']) {
      tool('crontab', broken);
      await expect(installBootEntry(deps)).rejects.toMatchObject({ code: 'SVC_INSTALL_REFUSED' });
      expect(calls().filter((line) => line === 'crontab -')).toEqual([]);
    }
  });
});

test('a unit takes the place of the line of a time without systemd', async () => {
  await withMachine(1000, async ({ deps, tool, crontab }) => {
    tool('systemctl', 'echo offline; exit 1');
    writeFileSync(crontab, '0 1 * * * backup\n');
    await installBootEntry(deps);
    tool('systemctl', runningSystemd);
    expect(await installBootEntry(deps)).toMatchObject({ kind: 'user-unit' });
    expect(readFileSync(crontab, 'utf8')).toBe('0 1 * * * backup\n');
  });
});

test('without systemd, the crontab gets one line beside those of others', async () => {
  await withMachine(1000, async ({ deps, tool, crontab }) => {
    tool('systemctl', 'echo offline; exit 1');
    writeFileSync(crontab, '0 1 * * * backup\n');
    const entry = await installBootEntry(deps);
    expect(entry).toMatchObject({ kind: 'cron', file: null });
    expect(await installBootEntry(deps)).toEqual(entry);
    expect(readFileSync(crontab, 'utf8')).toMatch(/^0 1 \* \* \* backup\n@reboot HOME='[^\n]+ controller start >> [^\n]+\n$/);
    expect(await findBootEntry(deps)).toEqual(entry);
    expect(await uninstallBootEntry(deps)).toEqual(entry);
    expect(readFileSync(crontab, 'utf8')).toBe('0 1 * * * backup\n');
    expect(await uninstallBootEntry(deps)).toBeUndefined();
  });
});

test('refused lingering is an error that names the command, and leaves no unit', async () => {
  await withMachine(1000, async ({ deps, tool }) => {
    tool('systemctl', runningSystemd);
    tool('loginctl', 'echo "Could not enable linger: Access denied" >&2; exit 1');
    await expect(installBootEntry(deps)).rejects.toMatchObject({
      code: 'SVC_INSTALL_REFUSED',
      message: expect.stringContaining('Access denied'),
      hint: expect.stringContaining('sudo loginctl enable-linger ann'),
    });
    expect(await findBootEntry(deps)).toBeUndefined();
  });
});

test('a unit that systemd refuses is removed again', async () => {
  await withMachine(0, async ({ deps, tool }) => {
    tool('systemctl', `${runningSystemd}\nif [ "$1" = enable ]; then echo 'Unit is masked.' >&2; exit 1; fi`);
    await expect(installBootEntry(deps)).rejects.toMatchObject({ message: expect.stringContaining('Unit is masked.') });
    expect(await findBootEntry(deps)).toBeUndefined();
  });
});

test('a machine without systemd and cron is an error with the next step', async () => {
  await withMachine(1000, async ({ deps, tool }) => {
    for (const name of ['systemctl', 'crontab']) tool(name, 'exit 127');
    await expect(installBootEntry(deps)).rejects.toMatchObject({ hint: expect.stringContaining('apt install cron') });
  });
});

test('a crontab that refuses the user is an error with its words', async () => {
  await withMachine(1000, async ({ deps, tool }) => {
    tool('systemctl', 'exit 127');
    tool('crontab', 'echo "You (ann) are not allowed to use this program" >&2; exit 1');
    await expect(installBootEntry(deps)).rejects.toMatchObject({ message: expect.stringContaining('not allowed') });
  });
});

test('a reboot is mentioned once, and not where a start is installed', async () => {
  await withMachine(0, async ({ deps, tool }) => {
    tool('systemctl', runningSystemd);
    expect([mentionsBoot(deps), mentionsBoot(deps)]).toEqual([true, false]);
  });
  await withMachine(0, async ({ deps, tool }) => {
    tool('systemctl', runningSystemd);
    await installBootEntry(deps);
    expect(mentionsBoot(deps)).toBe(false);
  });
});

needs('systemd-analyze', () => {
  test.for([0, 1000])('systemd accepts the unit of user %i, with its spaces and percent signs', async (uid) => {
    await withMachine(uid, async ({ deps, tool }) => {
      tool('systemctl', runningSystemd);
      const { file } = await installBootEntry(deps);
      const argv = ['systemd-analyze', ...(uid === 0 ? [] : ['--user']), 'verify', file ?? ''];
      // The verification needs a folder for the sockets of a user's systemd, which it does not start.
      const env = { ...wholeEnv(), XDG_RUNTIME_DIR: deps.paths.home };
      const { exitCode, stderr } = await runCommand(argv, { env, clock: systemClock });
      expect([exitCode, stderr]).toEqual([0, '']);
    });
  });
});
