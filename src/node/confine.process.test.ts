import { execFileSync, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import {
  chmodSync,
  existsSync,
  lchownSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  renameSync,
  rmSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { createServer } from 'node:net';
import { homedir } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { expect, test, vi } from 'vitest';
import { withLocalProvider } from '../../test/support/local-provider.ts';
import { needs } from '../../test/support/needs.ts';
import { withTempHome } from '../../test/support/temp-home.ts';
import { runInside, withCommand } from '../../test/support/run-inside.ts';
import { waitFor } from '../../test/support/wait-for.ts';
import type { IsolationKind } from '../remote/isolation/kinds.ts';
import { homePaths } from '../shared/paths.ts';
import { prepareHome } from '../shared/system/prepare-home.ts';

const isRoot = process.getuid?.() === 0;
const kind = isRoot ? 'root' : 'userns';

test.skipIf(!isRoot)('a replica does not start where a host mount stays writable', async () => {
  // Not in the home folder: a user namespace cannot make an overlay above a folder in which the host has mounted
  // something. Other tests make overlays there.
  const folder = mkdtempSync('/var/lib/svc-mounted-');
  execFileSync('mount', ['--bind', folder, folder]);
  try {
    await withLocalProvider({ isolation: kind }, async (provider) => {
      const { remote } = await provider.machine('a');
      const refusing = `case "$*" in --all*remount* | *remount*${folder}) exit 32 ;; esac`;
      expect(await withCommand('mount', refusing, () => runInside(remote, 'echo begun'))).toMatchObject({
        exitCode: 97,
        stdout: '',
        stderr: `the files in ${folder} could not be made read-only\n`,
      });
    });
  } finally {
    // A replica of another test may be reading its copy of the mount now.
    execFileSync('umount', ['--lazy', folder]);
    rmSync(folder, { recursive: true, force: true });
  }
});

test('with an old mount(8), /dev and SVC_HOME stay read-only for a replica', async () => {
  // A folder that is still writable at that moment.
  const table = join(mkdtempSync('/dev/shm/svc-t-'), 'fstab');
  try {
    await withLocalProvider({ isolation: kind }, async (provider) => {
      const { remote } = await provider.machine('a');
      // Simulates an old `mount`: it binds without making read-only, and knows only the mounts of fstab.
      const old = `case "$*" in
  --all*remount*) exit 0 ;;
  --all*) sed 's/ rbind,ro/ rbind/; s/ bind,ro/ bind/' "$3" > '${table}' && set -- --all --fstab '${table}' ;;
esac`;
      const script = `for path in /dev '${provider.paths.home}' /dev/shm; do touch "$path/own" && echo "wrote $path"; done`;
      const { stdout } = await withCommand('mount', old, () => runInside(remote, script));
      expect(stdout).toBe('wrote /dev/shm\n');
    });
  } finally {
    rmSync(dirname(table), { recursive: true, force: true });
  }
});

function testNamespaces(isolation: 'root' | 'userns' | 'bwrap'): void {
  test(`a replica isolated by ${isolation} cannot make namespaces`, async () => {
    await withLocalProvider({ isolation }, async (provider) => {
      const { remote } = await provider.machine('a');
      const script = `grep ^Seccomp: /proc/self/status; env | grep -c PERL_BADLANG
unshare --user true 2>&1`;
      const { stdout } = await runInside(remote, script);
      expect(stdout).toMatch(/^Seccomp:\t2\n0\nunshare: unshare failed: Operation not permitted\n$/);
    });
  });
}

if (isRoot) testNamespaces('root');
testNamespaces('userns');
needs('bwrap', () => testNamespaces('bwrap'));

test('a replica does not see another home of its user without a running controller', async () => {
  await withTempHome(async (folder) => {
    vi.stubEnv('HOME', folder);
    try {
      await withLocalProvider({ isolation: kind }, async (provider) => {
        const other = homePaths(join(folder, 'other'), process.getuid?.() ?? 0);
        prepareHome(other);
        writeFileSync(other.database, 'secret');
        const { remote } = await provider.machine('a');
        const { stdout } = await runInside(remote, `ls "${folder}"; cat "${other.database}"`);
        expect(stdout).toBe('other\n');
      });
    } finally {
      vi.unstubAllEnvs();
    }
  });
});

/** Files that mark a home without state.db: its state is in PostgreSQL or was deleted, or its controller is remote. */
for (const file of ['controller.lock', 'controller.json'])
  test(`a replica does not see a home that has ${file} and no state.db`, async () => {
    const folder = mkdtempSync(join(homedir(), '.svc-own-'));
    vi.stubEnv('HOME', folder);
    try {
      await withLocalProvider({ isolation: kind }, async (provider) => {
        const other = homePaths(join(folder, 'other'), process.getuid?.() ?? 0);
        prepareHome(other);
        writeFileSync(join(other.home, file), '');
        const { remote } = await provider.machine('a');
        expect((await runInside(remote, `ls -A "${other.home}"; echo ran`)).stdout).toBe('ran\n');
      });
    } finally {
      vi.unstubAllEnvs();
      rmSync(folder, { recursive: true });
    }
  });

test('a replica cannot connect to the control socket of an unlisted home without state.db', async () => {
  // Not below /tmp, because the program sees a /tmp of its own. Not in the home folder, because its list would include
  // this folder.
  const folder = mkdtempSync(isRoot ? '/var/lib/svc-t-' : join(homedir(), '.svc-t-'));
  const other = homePaths(folder, process.getuid?.() ?? 0);
  mkdirSync(other.runtimeDir);
  writeFileSync(join(folder, 'controller.lock'), '');
  const server = createServer().listen(other.controllerSocket);
  try {
    await once(server, 'listening');
    await withLocalProvider({ isolation: kind }, async (provider) => {
      const { remote } = await provider.machine('a');
      expect((await runInside(remote, `ls -A "${folder}"; echo ran`)).stdout).toBe('ran\n');
    });
  } finally {
    server.close();
    rmSync(folder, { recursive: true });
  }
});

/**
 * Runs `use` with another user's home folder, which lists a home, and with a folder of root's that all users may write
 * to.
 */
async function withAttacker(use: (folders: { readonly user: string; readonly shared: string }) => Promise<void>): Promise<void> {
  const user = mkdtempSync('/home/svc-t-');
  const shared = mkdtempSync(join(homedir(), '.svc-shared-'));
  try {
    chmodSync(shared, 0o1777);
    mkdirSync(join(user, '.svc/homes'), { recursive: true });
    await use({ user, shared });
  } finally {
    for (const folder of [user, shared]) rmSync(folder, { recursive: true, force: true });
  }
}

const nobody = 65_534;

function chownToNobody(path: string): void {
  lchownSync(path, nobody, nobody);
}

test.skipIf(!isRoot)("another user's list of homes neither stops a replica nor hides foreign folders", async () => {
  await withAttacker(async ({ user, shared }) => {
    const lists = join(user, '.svc/homes');
    const files = ['1', '2', '3'].map((name) => join(lists, name));
    writeFileSync(join(lists, '1'), '');
    truncateSync(join(lists, '1'), 2 ** 40);
    writeFileSync(join(lists, '2'), `${shared}\n`);
    writeFileSync(join(lists, '3'), `${user}/own\n`);
    execFileSync('mkfifo', [join(lists, '4')]);
    symlinkSync(join(lists, '4'), join(lists, '5'));
    mkdirSync(join(user, 'own'), { mode: 0o700 });
    const databases = [shared, join(user, 'own')].map((folder) => join(folder, 'state.db'));
    for (const path of databases) writeFileSync(path, 'state');
    for (const path of [user, join(user, '.svc'), lists, ...files, join(user, 'own'), ...databases]) chownToNobody(path);
    await withLocalProvider({ isolation: kind }, async (provider) => {
      const { remote } = await provider.machine('a');
      const { stdout } = await runInside(remote, `for path in ${databases.join(' ')} ${lists}; do [ ! -e "$path" ] || echo "$path"; done`);
      expect(stdout).toBe(`${databases[0]}\n`);
    });
  });
});

/** `removing`: a script before the command `name` that removes a home after all homes were found. */
function testRemovedHome(isolation: IsolationKind, name: 'mount' | 'bwrap', removing: (home: string) => string): void {
  test(`a home that is removed while a replica starts (${isolation}) does not stop it`, async () => {
    const folder = mkdtempSync(join(homedir(), '.svc-own-'));
    vi.stubEnv('HOME', folder);
    try {
      await withLocalProvider({ isolation }, async (provider) => {
        const other = homePaths(join(folder, 'other'), process.getuid?.() ?? 0);
        prepareHome(other);
        writeFileSync(other.database, 'secret');
        const { remote } = await provider.machine('a');
        const script = `ls "${folder}"; echo ran`;
        expect(await withCommand(name, removing(other.home), () => runInside(remote, script))).toMatchObject({
          stdout: 'ran\n',
          stderr: '',
        });
      });
    } finally {
      vi.unstubAllEnvs();
      rmSync(folder, { recursive: true });
    }
  });
}

testRemovedHome(kind, 'mount', (home) => `case "$*" in --all*remount*) rm -r '${home}' ;; esac`);
needs('bwrap', () => testRemovedHome('bwrap', 'bwrap', (home) => `case "$*" in *--info-fd*) rm -rf '${home}' ;; esac`));

test.skipIf(!isRoot)('homes that another user removes during a start stop and hide nothing', async () => {
  await withAttacker(async ({ user, shared }) => {
    writeFileSync(join(shared, 'file'), 'whole');
    for (const name of ['gone', 'swapped', 'linked', 'left', 'of-root']) {
      mkdirSync(join(user, name), { mode: 0o700 });
      writeFileSync(join(user, name, 'state.db'), 'state');
      writeFileSync(join(user, '.svc/homes', name), `${join(user, name)}\n`);
      if (name === 'of-root') continue;
      for (const path of [join(user, name), join(user, name, 'state.db'), join(user, '.svc/homes', name)]) chownToNobody(path);
    }
    for (const path of [user, join(user, '.svc')]) chownToNobody(path);
    await withLocalProvider({ isolation: kind }, async (provider) => {
      const { remote } = await provider.machine('a');
      // Runs after the homes are found, while files can still be written.
      const links = `for name in swapped of-root; do ln -s '${shared}' $name; done; ln -s '${shared}/file' linked`;
      const replacing = `case "$*" in --all*remount*) cd '${user}' && rm -r gone swapped linked of-root && { ${links}; cd /; } ;; esac`;
      const { stdout } = await withCommand('mount', replacing, () =>
        runInside(remote, `for folder in ${user} ${user}/left ${shared}; do echo $folder:; ls -A $folder; done; cat ${shared}/file`),
      );
      expect(stdout).toBe(`${user}:\n.svc\nleft\nlinked\nof-root\nswapped\n${user}/left:\n${shared}:\nfile\nwhole`);
    });
  });
});

test('a home folder that is gone when its homes are listed is skipped without a message', async () => {
  await withTempHome((home) => {
    for (const script of ['enter.sh', 'confine.sh']) symlinkSync(join(import.meta.dirname, script), join(home, script));
    writeFileSync(join(home, 'enter.conf'), '');
    const { status, stdout, stderr } = spawnSync('sh', [join(home, 'enter.sh'), '--homes', join(home, 'gone')], { encoding: 'utf8' });
    expect({ status, stdout, stderr }).toEqual({ status: 0, stdout: '', stderr: '' });
  });
});

/**
 * Owners of a home folder and of its ~/.svc link, if it is a link. ~/.svc itself, what it lists and the listed home
 * belong to root.
 */
const ownerships: readonly { readonly title: string; readonly homeOwner: number; readonly linkOwner?: number }[] = [
  { title: "~/.svc in another user's HOME", homeOwner: nobody },
  { title: "~/.svc behind another user's link", homeOwner: 0, linkOwner: nobody },
];

for (const isolation of ['root', 'userns'] as const)
  for (const { title, homeOwner, linkOwner } of ownerships)
    test.skipIf(!isRoot)(`a replica does not see its user's ${title} (${isolation})`, async () => {
      await withAttacker(async ({ user }) => {
        chmodSync(user, 0o755);
        mkdirSync(join(user, 'listed'));
        writeFileSync(join(user, 'listed/state.db'), 'secret');
        writeFileSync(join(user, '.svc/state.db'), 'secret');
        writeFileSync(join(user, '.svc/homes/1'), `${user}/listed\n`);
        if (linkOwner !== undefined) {
          renameSync(join(user, '.svc'), join(user, 'real'));
          symlinkSync('real', join(user, '.svc'));
          lchownSync(join(user, '.svc'), linkOwner, linkOwner);
        }
        lchownSync(user, homeOwner, homeOwner);
        vi.stubEnv('HOME', user);
        try {
          await withLocalProvider({ isolation }, async (provider) => {
            const { remote } = await provider.machine('a');
            expect((await runInside(remote, `cat ${user}/.svc/state.db ${user}/listed/state.db; echo ran`)).stdout).toBe('ran\n');
          });
        } finally {
          vi.unstubAllEnvs();
        }
      });
    });

test.skipIf(!isRoot)("another user's link and socket hide no foreign folders", async () => {
  await withAttacker(async ({ user, shared }) => {
    rmSync(join(user, '.svc'), { recursive: true });
    mkdirSync(join(shared, 'linked'));
    symlinkSync(join(shared, 'linked'), join(user, '.svc'));
    mkdirSync(join(shared, 'run'));
    writeFileSync(join(shared, 'state.db'), 'state');
    const server = createServer().listen(join(shared, 'run/own.sock'));
    try {
      await once(server, 'listening');
      for (const name of ['run', 'run/own.sock', 'state.db']) chownToNobody(join(shared, name));
      for (const path of [user, join(user, '.svc')]) chownToNobody(path);
      writeFileSync(join(shared, 'linked/file'), '');
      await withLocalProvider({ isolation: kind }, async (provider) => {
        const { remote } = await provider.machine('a');
        expect((await runInside(remote, `ls ${shared} ${shared}/linked`)).stdout).toMatch(/^linked\nrun\nstate.db\n[^]*\nfile\n$/m);
      });
    } finally {
      server.close();
    }
  });
});

test('a replica does not see the name of another home below /tmp', async () => {
  await withTempHome(async (folder) => {
    const other = homePaths(folder, process.getuid?.() ?? 0);
    mkdirSync(other.runtimeDir);
    writeFileSync(other.database, 'secret');
    // Simulates the socket of its controller, so that the home counts as known.
    const server = createServer().listen(other.controllerSocket);
    try {
      await once(server, 'listening');
      await withLocalProvider({ isolation: kind }, async (provider) => {
        const { remote } = await provider.machine('a');
        const { stdout } = await runInside(remote, 'ls -A /tmp');
        expect(stdout.split('\n')).toContain(basename(provider.paths.home));
        expect(stdout.split('\n')).not.toContain(basename(folder));
      });
    } finally {
      server.close();
    }
  });
});

test('a link that a program left in its /tmp creates no folder outside', async () => {
  await withTempHome(async (target) => {
    await withLocalProvider({ isolation: kind }, async (provider) => {
      const { remote } = await provider.machine('a');
      symlinkSync(target, join(dirname(remote.baseDir), 'tmp', basename(provider.paths.home)));
      const { exitCode, stderr } = await runInside(remote, 'true');
      expect([exitCode, stderr]).toEqual([97, `the folder ${provider.paths.home} could not be made in the own /tmp\n`]);
      expect(readdirSync(target)).toEqual([]);
    });
  });
});

function testTmpdir(isolation: IsolationKind): void {
  test(`a link in the path of TMPDIR creates no folder outside (${isolation})`, async () => {
    await withTempHome(async (target) => {
      await withLocalProvider({ isolation }, async (provider) => {
        const { remote } = await provider.machine('a');
        const tmp = join(dirname(remote.baseDir), 'tmp');
        vi.stubEnv('TMPDIR', '/tmp/user/0');
        try {
          expect((await runInside(remote, 'stat -c %a "$TMPDIR"')).stdout).toBe('700\n');
          rmSync(join(tmp, 'user'), { recursive: true });
          symlinkSync(`../${'../'.repeat(9)}${target.slice(1)}`, join(tmp, 'user'));
          expect((await runInside(remote, 'echo begun')).stdout).toBe('begun\n');
          expect(readdirSync(target)).toEqual([]);
        } finally {
          vi.unstubAllEnvs();
        }
      });
    });
  });
}

testTmpdir(kind);
needs('bwrap', () => testTmpdir('bwrap'));

test('the home layer of an ended or killed command is removed', async () => {
  await withLocalProvider({ isolation: kind }, async (provider) => {
    const { remote } = await provider.machine('a');
    const machine = dirname(remote.baseDir);
    const layers = (): readonly string[] => readdirSync(machine).filter((name) => name.startsWith('home.'));
    const begin = (name: string) => {
      const script = `mkdir -p "$HOME/layer"; echo begun > ${remote.baseDir}/${name}; exec sleep 1000`;
      const child = spawn('sh', [...remote.enter.slice(1), 'sh', '-c', script], { stdio: 'ignore' });
      return { child, begun: () => waitFor(`${name} to begin`, () => existsSync(join(remote.baseDir, name))) };
    };
    mkdirSync(remote.baseDir, { recursive: true });
    const first = begin('first');
    await first.begun();
    const second = begin('second');
    await second.begun();
    expect(layers()).toHaveLength(1);
    second.child.kill('SIGKILL');
    await once(second.child, 'exit');
    // Each command removes its own layer, and the layer of a killed command that has ended by then.
    const isTidy = async (): Promise<boolean> =>
      (await runInside(remote, 'echo own > "$HOME/own"')).exitCode === 0 && layers().length === 0;
    await waitFor('the layers of further commands to be removed', isTidy, { describe: layers });
    first.child.kill('SIGKILL');
    await once(first.child, 'exit');
  });
});
