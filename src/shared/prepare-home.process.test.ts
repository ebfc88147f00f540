import { chmodSync, chownSync, existsSync, mkdirSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { withTempHome } from '../../test/support/temp-home.ts';
import { homePaths } from './paths.ts';
import { checkHome, prepareHome } from './prepare-home.ts';

const uid = process.getuid?.() ?? 0;
const modeOf = (path: string): number => statSync(path).mode & 0o777;

test('the home and the folder of its sockets are made for this user alone', async () => {
  await withTempHome((root) => {
    const paths = homePaths(join(root, 'deep/home'), uid);
    prepareHome(paths);
    prepareHome(paths);
    expect([modeOf(paths.home), modeOf(paths.runtimeDir)]).toEqual([0o700, 0o700]);
  });
});

test('a home that others can look into is refused, with the command that closes it', async () => {
  await withTempHome((root) => {
    chmodSync(root, 0o750);
    expect(() => prepareHome(homePaths(root, uid))).toThrow(
      expect.objectContaining({ code: 'SVC_HOME_UNUSABLE', hint: `Run: chmod 700 ${root}` }),
    );
  });
});

// Only root can give a folder away.
test.skipIf(uid !== 0)('a home of another user is refused', async () => {
  await withTempHome((root) => {
    chownSync(root, 65_534, 65_534);
    expect(() => prepareHome(homePaths(root, uid))).toThrow(/belongs to another user \(uid 65534\)/);
  });
});

test('a home that cannot be a folder is refused', async () => {
  await withTempHome((root) => {
    const file = join(root, 'file');
    writeFileSync(file, '');
    for (const home of [file, join(file, 'home')])
      expect(() => prepareHome(homePaths(home, uid))).toThrow(expect.objectContaining({ code: 'SVC_HOME_UNUSABLE' }));
  });
});

test('the home may be a link, the folder of its sockets may not', async () => {
  await withTempHome((root) => {
    mkdirSync(join(root, 'real'), { mode: 0o700 });
    symlinkSync(join(root, 'real'), join(root, 'link'));
    prepareHome(homePaths(join(root, 'link'), uid));
    mkdirSync(join(root, 'other/elsewhere'), { recursive: true, mode: 0o700 });
    symlinkSync(join(root, 'other/elsewhere'), join(root, 'other/run'));
    expect(() => prepareHome(homePaths(join(root, 'other'), uid))).toThrow(/is not a folder/);
  });
});

test('looking makes nothing, and refuses what would be refused', async () => {
  await withTempHome((root) => {
    const home = join(root, 'home');
    expect(checkHome(homePaths(home, uid))).toBe(false);
    expect(existsSync(home)).toBe(false);
    mkdirSync(home, { mode: 0o700 });
    expect(checkHome(homePaths(home, uid))).toBe(true);
    mkdirSync(join(home, 'run'));
    chmodSync(join(home, 'run'), 0o777);
    expect(() => checkHome(homePaths(home, uid))).toThrow(expect.objectContaining({ hint: `Run: chmod 700 ${home}/run` }));
    writeFileSync(join(root, 'file'), '');
    for (const path of ['file', 'file/home'])
      expect(() => checkHome(homePaths(join(root, path), uid))).toThrow(expect.objectContaining({ code: 'SVC_HOME_UNUSABLE' }));
  });
});
