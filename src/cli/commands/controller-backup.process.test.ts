import { execFileSync } from 'node:child_process';
import {
  chmodSync,
  existsSync,
  globSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { expect, test } from 'vitest';
import { runInProcess } from '../../../test/support/cli-world.ts';
import type { FakeRoutes } from '../../../test/support/fake-client.ts';
import { withTempHome } from '../../../test/support/temp-home.ts';
import { aHealthReply } from '../../../test/support/views.ts';
import { schemaVersion } from '../../domain/backup.ts';
import { tryProcessLock } from '../../shared/system/process-lock.ts';

/** A home with one service, and a controller that copies its state. */
interface Scene {
  readonly home: string;
  readonly file: string;
  readonly write: (path: string, text: string) => void;
  readonly read: (path: string) => string;
  readonly backup: (schema?: number) => ReturnType<typeof runInProcess>;
  readonly restore: (home?: string) => ReturnType<typeof runInProcess>;
}

async function withScene(use: (scene: Scene) => Promise<void>): Promise<void> {
  await withTempHome(async (root) => {
    const home = join(root, 'home');
    const write = (path: string, text: string): void => {
      mkdirSync(dirname(join(home, path)), { recursive: true, mode: 0o700 });
      writeFileSync(join(home, path), text);
    };
    for (const [path, text] of Object.entries({
      'config.yaml': 'old config',
      'services/k/v1/workdir/index.html': 'old page',
      'services/k/access.log': 'a request',
      'local/machines/m/machine.json': '{}',
    }))
      write(path, text);
    symlinkSync('index.html', join(home, 'services/k/v1/workdir/link'));
    const file = join(root, 'b.tar.gz');
    const routes = (schema: number): FakeRoutes => ({
      snapshotState() {
        write('uploads/backup-1/state.db', 'database');
        write('uploads/backup-1/state.db.seal', '{}');
        return { folder: join(home, 'uploads/backup-1'), schema, services: ['chat'], outside: ['/etc/key.pem'] };
      },
    });
    await use({
      home,
      file,
      write,
      read: (path) => readFileSync(join(home, path), 'utf8'),
      backup: (schema = schemaVersion) => runInProcess(['controller', 'backup', file], { home, routes: routes(schema) }),
      restore: (target = home) => runInProcess(['controller', 'restore', file], { home: target }),
    });
  });
}

test('a backup is private, says that it has secrets, and names files that it lacks', async () => {
  await withScene(async ({ home, file, backup }) => {
    const { code, stderr } = await backup();
    expect(code).toBe(0);
    expect(stderr).toContain('Backed up the service chat');
    expect(stderr).toContain('It contains secrets');
    expect(stderr).toContain('/etc/key.pem');
    expect(statSync(file).mode & 0o777).toBe(0o600);
    const names = execFileSync('tar', ['-tzf', file], { encoding: 'utf8' });
    expect(names).toContain('services/k/v1/workdir/link\n');
    expect(names).not.toMatch(/access\.log|local|uploads/);
    expect(existsSync(join(home, 'uploads/backup-1'))).toBe(false);
    expect(readdirSync(dirname(file)).filter((name) => name.endsWith('.tmp'))).toEqual([]);
  });
});

test('a backup does not overwrite a file', async () => {
  await withScene(async ({ file, backup }) => {
    writeFileSync(file, 'mine');
    expect(await backup()).toMatchObject({ code: 4, stderr: expect.stringMatching(/exists already[^]*SVC_BACKUP_REFUSED/) });
    expect(readFileSync(file, 'utf8')).toBe('mine');
  });
});

test('restore replaces what differs, keeps that aside, and leaves other files', async () => {
  await withScene(async ({ home, file, write, read, backup, restore }) => {
    await backup();
    write('config.yaml', 'new config');
    write('services/later/v1/workdir/index.html', 'of a later service');
    for (const name of ['state.db', 'state.db-wal', 'controller.idle']) write(name, `present ${name}`);
    const { code, stderr } = await restore();
    expect({ code, stderr }).toEqual({ code: 0, stderr: expect.stringContaining(`Restored the service chat from ${file}`) });
    const [aside = ''] = globSync(join(home, 'before-restore-*'));
    expect(stderr).toContain(aside);
    expect([read('config.yaml'), read('state.db'), read('services/k/v1/workdir/link')]).toEqual(['old config', 'database', 'old page']);
    expect(read('services/later/v1/workdir/index.html')).toBe('of a later service');
    expect(readdirSync(aside).toSorted()).toEqual(['config.yaml', 'state.db', 'state.db-wal']);
    expect(readFileSync(join(aside, 'state.db'), 'utf8')).toBe('present state.db');
    for (const name of ['state.db-wal', 'controller.idle', 'backup.json']) expect(existsSync(join(home, name))).toBe(false);
    expect(globSync(join(home, 'restore-*'))).toEqual([]);
  });
});

test('restore into an empty home keeps nothing aside', async () => {
  await withScene(async ({ home, backup, restore }) => {
    await backup();
    const target = `${home}-2`;
    const { code, stderr } = await restore(target);
    expect(code).toBe(0);
    expect(stderr).not.toContain('before-restore');
    expect(readdirSync(target).toSorted()).toEqual(['config.yaml', 'controller.lock', 'run', 'services', 'state.db', 'state.db.seal']);
  });
});

test('a truncated, foreign or newer file changes nothing', async () => {
  await withScene(async ({ home, file, write, read, backup, restore }) => {
    await backup(schemaVersion + 1);
    write('state.db', 'present');
    expect(await restore()).toMatchObject({ code: 4, stderr: expect.stringContaining('newer than this one') });
    truncateSync(file, statSync(file).size - 20);
    expect(await restore()).toMatchObject({ code: 2, stderr: expect.stringContaining('SVC_BAD_BACKUP') });
    execFileSync('tar', ['-czf', file, '-C', home, 'config.yaml']);
    expect(await restore()).toMatchObject({ code: 2, stderr: expect.stringContaining('is no backup of svc') });
    expect(read('state.db')).toBe('present');
    expect(globSync(join(home, '{before-restore,restore}-*'))).toEqual([]);
  });
});

test('restore is refused while a controller runs', async () => {
  await withScene(async ({ home, file, backup }) => {
    await backup();
    const { code, stderr } = await runInProcess(['controller', 'restore', file], { home, routes: { health: () => aHealthReply() } });
    expect({ code, stderr }).toEqual({ code: 4, stderr: expect.stringContaining('svc controller stop --keep-services') });
  });
});

test('restore is refused while another process holds the lock of the controller', async () => {
  await withScene(async ({ home, read, backup, restore }) => {
    await backup();
    const lock = tryProcessLock(join(home, 'controller.lock'));
    expect(await restore()).toMatchObject({ code: 4, stderr: expect.stringContaining('SVC_CONTROLLER_RUNNING') });
    lock?.release();
    expect(await restore()).toMatchObject({ code: 0 });
    expect(read('state.db')).toBe('database');
  });
});

test('a backup within the home that it backs up is refused', async () => {
  await withScene(async ({ home }) => {
    const { code, stderr } = await runInProcess(['controller', 'backup', join(home, 'services/b.tar.gz')], { home });
    expect({ code, stderr }).toEqual({ code: 4, stderr: expect.stringContaining('SVC_BACKUP_REFUSED') });
  });
});

test('a link in the place of a folder of the home is named, because the backup lacks what it leads to', async () => {
  await withScene(async ({ home, backup }) => {
    symlinkSync('/etc', join(home, 'linked'));
    expect((await backup()).stderr).toContain(join(home, 'linked'));
  });
});

test('an archive with a file that no backup has changes nothing', async () => {
  await withScene(async ({ home, file, write, read, backup, restore }) => {
    await backup();
    const unpacked = `${home}-unpacked`;
    mkdirSync(unpacked);
    execFileSync('tar', ['-xzf', file, '-C', unpacked]);
    mkdirSync(join(unpacked, 'run'));
    writeFileSync(join(unpacked, 'run/token'), 'forged');
    execFileSync('tar', ['-czf', file, '-C', unpacked, '.']);
    write('state.db', 'present');
    expect(await restore()).toMatchObject({ code: 2, stderr: expect.stringContaining('SVC_BAD_BACKUP') });
    expect(read('state.db')).toBe('present');
  });
});

test('a folder that its owner may not change is restored, and nothing of the archive stays', async () => {
  await withScene(async ({ home, write, backup, restore }) => {
    write('services/k/v1/workdir/cache/module', 'module');
    chmodSync(join(home, 'services/k/v1/workdir/cache'), 0o555);
    await backup();
    expect(await restore()).toMatchObject({ code: 0 });
    expect(globSync(join(home, 'restore-*'))).toEqual([]);
    chmodSync(join(home, 'services/k/v1/workdir/cache'), 0o755);
  });
});

test('a complete restore removes the mark and the folder of a killed one', async () => {
  await withScene(async ({ home, file, write, read, backup, restore }) => {
    await backup();
    write('config.yaml', 'new config');
    // No database: the restore fails at its last step.
    write('state.db/file', '');
    expect(await restore()).toMatchObject({ code: 4, stderr: expect.stringContaining('only a part of the backup') });
    expect(JSON.parse(read('unfinished-restore.json'))).toMatchObject({ file });
    rmSync(join(home, 'state.db'), { recursive: true });
    // What a killed command leaves.
    write('restore-0a1b2c/half', '');
    write('unfinished-restore.json', JSON.stringify({ file, staging: 'restore-0a1b2c' }));
    expect(await restore()).toMatchObject({ code: 0 });
    expect([read('config.yaml'), read('state.db')]).toEqual(['old config', 'database']);
    expect(globSync(join(home, '{restore-,unfinished}*'))).toEqual([]);
  });
});
