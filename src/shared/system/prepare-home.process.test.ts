import { chmodSync, chownSync, existsSync, mkdirSync, readdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { userInfo } from 'node:os';
import { join } from 'node:path';
import { expect, test, vi } from 'vitest';
import { withTempHome } from '../../../test/support/temp-home.ts';
import { homePaths } from '../paths.ts';
import { checkHome, prepareHome } from './prepare-home.ts';

// Tests must not write into the home folder of the user who runs them.
vi.mock('node:os', { spy: true });

const uid = process.getuid?.() ?? 0;
const modeOf = (path: string): number => statSync(path).mode & 0o777;

test('the home and its socket folder are private to this user', async () => {
  await withTempHome((root) => {
    const paths = homePaths(join(root, 'deep/home'), uid);
    prepareHome(paths);
    prepareHome(paths);
    expect([modeOf(paths.home), modeOf(paths.runtimeDir)]).toEqual([0o700, 0o700]);
  });
});

test('a home other than the default is listed in the default by real path', async () => {
  await withTempHome((root) => {
    vi.stubEnv('HOME', root);
    try {
      for (const name of ['.svc', 'other']) prepareHome(homePaths(join(root, name), uid));
      symlinkSync(join(root, 'other'), join(root, 'link'));
      prepareHome(homePaths(join(root, 'link'), uid));
      const lists = readdirSync(join(root, '.svc/homes'));
      expect(lists.map((name) => readFileSync(join(root, '.svc/homes', name), 'utf8'))).toEqual([`${join(root, 'other')}\n`]);
    } finally {
      vi.unstubAllEnvs();
    }
  });
});

test('a list entry that a full disk left empty is rewritten', async () => {
  await withTempHome((root) => {
    vi.stubEnv('HOME', root);
    try {
      const paths = homePaths(join(root, 'other'), uid);
      prepareHome(paths);
      const lists = join(root, '.svc/homes');
      const list = join(lists, readdirSync(lists)[0] ?? '');
      writeFileSync(list, '');
      prepareHome(paths);
      expect(readFileSync(list, 'utf8')).toBe(`${paths.home}\n`);
      expect(readdirSync(lists)).toHaveLength(1);
    } finally {
      vi.unstubAllEnvs();
    }
  });
});

// Only root can change the owner of a folder.
test.skipIf(uid !== 0)("a home below another user's HOME is listed in the own home folder", async () => {
  await withTempHome((root) => {
    const [user, own] = [join(root, 'user'), join(root, 'own')];
    mkdirSync(user);
    chownSync(user, 65_534, 65_534);
    vi.stubEnv('HOME', user);
    vi.mocked(userInfo).mockReturnValue({ ...userInfo(), homedir: own });
    try {
      prepareHome(homePaths(join(user, 'home'), uid));
      expect(readdirSync(user)).toEqual(['home']);
      const lists = join(own, '.svc/homes');
      expect(readdirSync(lists).map((name) => readFileSync(join(lists, name), 'utf8'))).toEqual([`${join(user, 'home')}\n`]);
    } finally {
      vi.mocked(userInfo).mockReset();
      vi.unstubAllEnvs();
    }
  });
});

test('a home that others can read becomes private, with a notice', async () => {
  await withTempHome((root) => {
    const home = join(root, 'home');
    mkdirSync(home);
    chmodSync(home, 0o755);
    const said: string[] = [];
    for (const isThere of [true, true]) expect(checkHome(homePaths(home, uid), (text) => said.push(text))).toBe(isThere);
    expect([said, statSync(home).mode & 0o777]).toEqual([[`Other users could read the folder ${home}; it is private now.`], 0o700]);
  });
});

test('a home that others can write to is rejected with the chmod command', async () => {
  await withTempHome((root) => {
    chmodSync(root, 0o770);
    expect(() => prepareHome(homePaths(root, uid))).toThrow(
      expect.objectContaining({ code: 'SVC_HOME_UNUSABLE', hint: `Run: chmod 700 ${root}` }),
    );
  });
});

// Only root can change the owner of a folder.
test.skipIf(uid !== 0)('a home of another user is rejected', async () => {
  await withTempHome((root) => {
    chownSync(root, 65_534, 65_534);
    expect(() => prepareHome(homePaths(root, uid))).toThrow(/belongs to another user \(uid 65534\)/);
  });
});

test('a home that cannot be a folder is rejected', async () => {
  await withTempHome((root) => {
    const file = join(root, 'file');
    writeFileSync(file, '');
    for (const home of [file, join(file, 'home')])
      expect(() => prepareHome(homePaths(home, uid))).toThrow(expect.objectContaining({ code: 'SVC_HOME_UNUSABLE' }));
  });
});

test('the home may be a link, its socket folder may not', async () => {
  await withTempHome((root) => {
    mkdirSync(join(root, 'real'), { mode: 0o700 });
    symlinkSync(join(root, 'real'), join(root, 'link'));
    prepareHome(homePaths(join(root, 'link'), uid));
    mkdirSync(join(root, 'other/elsewhere'), { recursive: true, mode: 0o700 });
    symlinkSync(join(root, 'other/elsewhere'), join(root, 'other/run'));
    expect(() => prepareHome(homePaths(join(root, 'other'), uid))).toThrow(/is not a folder/);
  });
});

test('checkHome creates nothing and rejects the same homes', async () => {
  await withTempHome((root) => {
    const home = join(root, 'home');
    expect(checkHome(homePaths(home, uid), () => undefined)).toBe(false);
    expect(existsSync(home)).toBe(false);
    mkdirSync(home, { mode: 0o700 });
    expect(checkHome(homePaths(home, uid), () => undefined)).toBe(true);
    mkdirSync(join(home, 'run'));
    chmodSync(join(home, 'run'), 0o777);
    expect(() => checkHome(homePaths(home, uid), () => undefined)).toThrow(expect.objectContaining({ hint: `Run: chmod 700 ${home}/run` }));
    writeFileSync(join(root, 'file'), '');
    for (const path of ['file', 'file/home'])
      expect(() => checkHome(homePaths(join(root, path), uid), () => undefined)).toThrow(
        expect.objectContaining({ code: 'SVC_HOME_UNUSABLE' }),
      );
  });
});
