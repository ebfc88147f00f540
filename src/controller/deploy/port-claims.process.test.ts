import {
  chmodSync,
  chownSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  rmSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { FakeClock } from '../../../test/support/fake-clock.ts';
import { withTempHome } from '../../../test/support/temp-home.ts';
import { homePaths } from '../../shared/paths.ts';
import { PortClaims } from './port-claims.ts';

const uid = process.getuid?.() ?? 0;
const otherUid = 4_711;
const dayMs = 86_400_000;
const port = 31_000;

interface Home {
  readonly path: string;
  readonly claims: PortClaims;
}

/** Homes whose services c0, c1, ... have folders, over one registry. */
async function withHomes(use: (dir: string, one: Home, two: Home, clock: FakeClock) => void): Promise<void> {
  await withTempHome((root) => {
    const dir = join(root, 'ports');
    const clock = new FakeClock();
    const [one, two] = ['one', 'two'].map((name): Home => {
      const path = join(root, name);
      for (const key of ['c0', 'c1']) mkdirSync(join(path, 'services', key), { recursive: true });
      return { path, claims: new PortClaims({ paths: homePaths(path, uid), clock, dir, uid }) };
    });
    if (one !== undefined && two !== undefined) use(dir, one, two, clock);
    return Promise.resolve();
  });
}

const owner = (name: string, key: string, at = port) => ({ name, key, port: at });

test('a port claimed by one home is refused to another one until its release', async () => {
  await withHomes((dir, one, two) => {
    expect(one.claims.take(owner('chat', 'c0'))).toBeUndefined();
    expect(two.claims.take(owner('other', 'c1'))).toMatchObject({ port, home: one.path, service: 'chat', key: 'c0', uid });
    expect([...two.claims.others().keys()]).toEqual([port]);
    expect([...one.claims.others().keys()]).toEqual([]);
    two.claims.release({ port, key: 'c1' });
    expect(readdirSync(dir)).toEqual([`${port}.${uid}`]);
    one.claims.release({ port, key: 'c0' });
    expect(readdirSync(dir)).toEqual([]);
    expect(two.claims.take(owner('other', 'c1'))).toBeUndefined();
  });
});

test('all users may claim in the folder, and remove only their own claims', async () => {
  await withHomes((dir, one) => {
    one.claims.take(owner('chat', 'c0'));
    expect([lstatSync(dir).mode & 0o7777, lstatSync(join(dir, `${port}.${uid}`)).mode & 0o777]).toEqual([0o1777, 0o644]);
  });
});

test('the claim of a service without its folder or home is taken over', async () => {
  await withHomes((_, one, two) => {
    one.claims.take(owner('chat', 'c0'));
    one.claims.take(owner('embed', 'c1', port + 1));
    rmSync(join(one.path, 'services', 'c0'), { recursive: true });
    expect([...two.claims.others().keys()]).toEqual([port + 1]);
    expect(two.claims.take(owner('other', 'c0'))).toBeUndefined();
    rmSync(one.path, { recursive: true });
    expect(two.claims.take(owner('other', 'c1', port + 1))).toBeUndefined();
    expect(two.claims.own().map(({ service }) => service)).toEqual(['other', 'other']);
  });
});

test('two services of one home that start together get different ports', async () => {
  await withHomes((_, one) => {
    expect(one.claims.take(owner('chat', 'c0'))).toBeUndefined();
    expect(one.claims.take(owner('embed', 'c1'))).toMatchObject({ key: 'c0' });
    expect(one.claims.take(owner('chat', 'c0'))).toBeUndefined();
  });
});

test('a home renews claims that a cleaner removed and releases those of a crash', async () => {
  await withHomes((dir, one) => {
    one.claims.take(owner('crashed', 'c1', port + 1));
    writeFileSync(join(dir, `.${uid}-abcdef`), 'half');
    utimesSync(join(dir, `.${uid}-abcdef`), 0, 0);
    expect(one.claims.keep([owner('chat', 'c0')], one.claims.own())).toEqual([]);
    expect(readdirSync(dir)).toEqual([`${port}.${uid}`]);
  });
});

test("the user's next home removes the claims of deleted homes", async () => {
  await withHomes((dir, one, two) => {
    one.claims.take(owner('chat', 'c0'));
    rmSync(one.path, { recursive: true });
    two.claims.keep([owner('other', 'c1', port + 1)], []);
    expect(readdirSync(dir)).toEqual([`${port + 1}.${uid}`]);
  });
});

test('a claim is confirmed each day', async () => {
  await withHomes((dir, one, _, clock) => {
    one.claims.take(owner('chat', 'c0'));
    const file = join(dir, `${port}.${uid}`);
    const before = (clock.now() - 2 * dayMs) / 1_000;
    utimesSync(file, before, before);
    one.claims.keep([owner('chat', 'c0')], []);
    expect(lstatSync(file).mtimeMs).toBeCloseTo(clock.now(), -1);
  });
});

test('links, other file types, invalid text and junk claim no port', async () => {
  await withHomes((dir, one, two) => {
    one.claims.take(owner('chat', 'c0', port + 9));
    const claim = (fields: object): string => JSON.stringify({ home: one.path, service: 'chat', key: 'c0', ...fields });
    const victim = join(one.path, 'victim');
    writeFileSync(victim, claim({}));
    symlinkSync(victim, join(dir, `${port}.${uid}`));
    mkdirSync(join(dir, `${port + 1}.${uid}`));
    writeFileSync(join(dir, `${port + 2}.${uid}`), 'no claim');
    writeFileSync(join(dir, `${port + 3}.${uid}`), claim({ service: 'a\u001B[2J' }));
    writeFileSync(join(dir, `${port + 4}.${uid}`), claim({ key: '../../etc' }));
    writeFileSync(join(dir, `${port + 5}.${uid}`), claim({ home: '/a\nb' }));
    writeFileSync(join(dir, `${port + 6}.${uid}`), claim({ more: 'x'.repeat(10_000) }));
    // Names a user who did not write the file.
    writeFileSync(join(dir, `${port + 7}.${otherUid}`), claim({}));
    writeFileSync(join(dir, '99999.0'), claim({}));
    expect([...two.claims.others().keys()]).toEqual([port + 9]);
    expect(two.claims.take(owner('other', 'c1'))).toBeUndefined();
    expect(existsSync(victim)).toBe(true);
  });
});

test('with an unusable claims folder a service still starts; its port is reported unprotected', async () => {
  await withHomes((dir, one) => {
    const otherDir = join(one.path, 'elsewhere');
    mkdirSync(otherDir);
    symlinkSync(otherDir, dir);
    expect(one.claims.take(owner('chat', 'c0'))).toBeUndefined();
    expect([one.claims.others().size, readdirSync(otherDir)]).toEqual([0, []]);
    expect(one.claims.problems.get(port)).toMatch(/^Port 31000 is not protected .*its claim failed: .*\/ports is no folder\./);
    rmSync(dir);
    expect(one.claims.keep([owner('chat', 'c0')], [])).toEqual([]);
    expect([one.claims.problems.size, readdirSync(dir)]).toEqual([0, [`${port}.${uid}`]]);
  });
});

test.each(['müller', '日本', 'a b'])('a home named %s keeps its port', async (name) => {
  await withHomes((dir, one, two, clock) => {
    const home = join(one.path, name);
    mkdirSync(join(home, 'services', 'c0'), { recursive: true });
    const claims = new PortClaims({ paths: homePaths(home, uid), clock, dir, uid });
    expect(claims.take(owner('chat', 'c0'))).toBeUndefined();
    expect(claims.own()).toHaveLength(1);
    expect(two.claims.take(owner('other', 'c1'))).toMatchObject({ home, key: 'c0' });
  });
});

test.each(['a\tb', 'a\u202Eb', 'a\u001B[2Jb'])('the port of a home with the unprintable name %j is reported unprotected', async (name) => {
  await withHomes((dir, one, _, clock) => {
    const home = join(one.path, name);
    mkdirSync(join(home, 'services', 'c0'), { recursive: true });
    const claims = new PortClaims({ paths: homePaths(home, uid), clock, dir, uid });
    expect(claims.take(owner('chat', 'c0'))).toBeUndefined();
    expect(claims.problems.get(port)).toMatch(/^Port 31000 is not protected /);
  });
});

// As root: files of another user, and a home of theirs that other users cannot inspect.

test.skipIf(uid !== 0)("another user's claims count for up to 256 ports", async () => {
  await withHomes((dir, one, two, clock) => {
    one.claims.take(owner('chat', 'c0'));
    for (let index = 1; index <= 300; index += 1) {
      const path = join(dir, `${port + index}.${otherUid}`);
      writeFileSync(path, JSON.stringify({ home: one.path, service: 'chat', key: 'c1' }));
      chownSync(path, otherUid, otherUid);
      utimesSync(path, clock.now() / 1_000, clock.now() / 1_000);
    }
    expect(two.claims.others().size).toBe(257);
    expect(two.claims.take(owner('other', 'c1', port + 1))).toMatchObject({ uid: otherUid });
    expect(existsSync(join(dir, `${port + 1}.${uid}`))).toBe(false);
  });
});

test.skipIf(uid !== 0)('a port whose claim another user blocks is usable and reported as unprotected', async () => {
  await withHomes((dir, one) => {
    chmodSync(join(one.path, '..'), 0o755);
    mkdirSync(dir);
    chmodSync(dir, 0o1777);
    const path = join(dir, `${port}.${otherUid}`);
    writeFileSync(path, 'not of that user');
    const claims = new PortClaims({ paths: homePaths(one.path, otherUid), clock: new FakeClock(), dir, uid: otherUid });
    process.seteuid?.(otherUid);
    try {
      expect(claims.take(owner('chat', 'c0'))).toBeUndefined();
      expect(claims.take(owner('chat', 'c0', port + 1))).toBeUndefined();
      expect([...claims.problems]).toEqual([[port, expect.stringContaining(`${path} is not of user ${otherUid}`)]]);
      process.seteuid?.(0);
      chmodSync(dir, 0o755);
      process.seteuid?.(otherUid);
      expect(claims.take(owner('chat', 'c0', port + 2))).toBeUndefined();
      expect(claims.problems.get(port + 2)).toContain('EACCES: permission denied');
    } finally {
      process.seteuid?.(0);
    }
  });
});

test.skipIf(uid !== 0).each([0o700, 0o755])("another user's unconfirmed claim expires after 90 days (home: %o)", async (mode) => {
  await withHomes((dir, one, __, clock) => {
    one.claims.take(owner('chat', 'c0'));
    const two = { claims: new PortClaims({ paths: homePaths(join(dir, '..', 'two'), otherUid), clock, dir, uid: otherUid }) };
    chmodSync(one.path, mode);
    for (const path of [join(one.path, '..'), dir]) chmodSync(path, path === dir ? 0o1777 : 0o755);
    const file = join(dir, `${port}.${uid}`);
    const at = (daysAgo: number): boolean => {
      utimesSync(file, (clock.now() - daysAgo * dayMs) / 1_000, (clock.now() - daysAgo * dayMs) / 1_000);
      process.seteuid?.(otherUid);
      try {
        return two.claims.others().has(port);
      } finally {
        process.seteuid?.(0);
      }
    };
    expect([at(0), at(89), at(91)]).toEqual([true, true, false]);
  });
});
