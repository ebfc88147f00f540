import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:net';
import { homedir, tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test, vi } from 'vitest';
import { withLocalProvider, type LocalProviderFixture } from '../../../test/support/local-provider.ts';
import { processesOf } from '../../../test/support/leaks.ts';
import { needs } from '../../../test/support/needs.ts';
import { withTempHome } from '../../../test/support/temp-home.ts';
import { waitFor } from '../../../test/support/wait-for.ts';
import { jobLogPath, jobStatus, startJob } from '../../provision/job.ts';
import type { Remote } from '../../remote/remote.ts';
import type { IsolationKind } from '../../remote/isolation/kinds.ts';
import { homePaths } from '../../shared/paths.ts';
import { machineFiles } from './machine-store.ts';

const isRoot = process.getuid?.() === 0;

/** Limit of all attacks together, ms. They start hundreds of processes, which takes minutes on a very busy machine. */
const attackMs = 600_000;

/** Attacks, as shell: each line of the output is an attack that succeeded. */
const attacks = `
attack() { what=$1; shift; "$@" > /dev/null 2>&1 && echo "$what"; }
each_process() { for p in /proc/[0-9]*; do "$@" "$p" && return 0; done; return 1; }
through_root() { cat "$2/root$1/state.db"; }
through_cwd() { cat "$1/cwd/../../../../../../state.db"; }
attack 'reads the state' cat "$HOME_OF_SVC/state.db"
attack 'reads the state by a link' cat "$LINK_TO_SVC/state.db"
attack 'reads the state through a process' each_process through_root "$HOME_OF_SVC"
attack 'reads the state through a working directory' each_process through_cwd
attack 'reads the state of another home' cat "$OTHER_HOME/state.db"
attack 'sees another machine' ls "$OTHER_MACHINE"
attack 'reads its machine record' cat "$BASE/../machine.json"
attack 'writes the script that enters' sh -c ': >> "$BASE/../enter.sh"'
attack 'writes the script of its job' sh -c ': >> "$BASE/jobs/main/runner.sh"'
attack 'replaces its jobs' sh -c 'mv "$BASE/jobs" "$BASE/jobs.old" && mv "$BASE/jobs.old" "$BASE/jobs"'
attack 'writes /etc' touch /etc/svc-breach
attack 'writes /usr' touch /usr/svc-breach
attack 'writes /var' touch /var/lib/svc-breach
attack 'writes a cgroup' mkdir /sys/fs/cgroup/svc-breach
attack 'writes a setting of the kernel' sh -c 'cat /proc/sys/kernel/core_pattern > /proc/sys/kernel/core_pattern'
attack 'makes the host files writable' mount -o remount,bind,rw /
attack 'uncovers svc' umount "$HOME_OF_SVC"
attack 'uncovers svc as root of a namespace' unshare -Urm sh -c 'umount -l "$HOME_OF_SVC" && cat "$HOME_OF_SVC/state.db"'
attack 'binds around the cover' unshare -Urm sh -c 'mount --bind / /mnt && cat "/mnt/$HOME_OF_SVC/state.db"'
attack 'writes as root of a namespace' unshare -Urm sh -c 'mount -o remount,bind,rw / && touch /etc/svc-breach'
attack 'makes a device' mknod /tmp/disk b 254 0
for device in /dev/vd? /dev/sd? /dev/mem /dev/loop0 /dev/console; do attack "opens $device" head -c 1 "$device"; done
attack 'signals a process of the host' kill -0 "$OUTSIDE"
trap '' USR1
wake_debugger() { case $(cat "$1/comm") in node | MainThread) kill -USR1 "\${1#/proc/}" ;; esac; return 1; }
each_process wake_debugger 2> /dev/null
"$NODE" --input-type=module -e "
import { connect } from 'node:net';
const doors = { 'the controller': process.env.CONTROL_SOCKET, 'another replica': process.env.OTHER_SOCKET, 'a program of the host': process.env.HOST_SOCKET, 'the debugger of the way in': { host: '127.0.0.1', port: 9229 } };
for (const [name, door] of Object.entries(doors)) connect(door).on('connect', function () { console.log('connects to ' + name); this.destroy(); }).on('error', () => {});
"
attack 'MAY: write its folder' sh -c 'echo own > "$BASE/workdir/own"'
attack 'MAY: write /tmp' touch /tmp/own
attack 'MAY: write /dev/shm' touch /dev/shm/own
attack 'MAY: write /dev/null' sh -c ': > /dev/null'
attack 'MAY: read the home folder' ls "$HOME"
attack 'MAY: write a layer above the home folder' touch "$HOME/svc-breach"
exit 0
`;

function listenOn(path: string): Promise<Server> {
  const server = createServer((socket) => socket.destroy());
  return new Promise((resolve) => server.listen(path, () => resolve(server)));
}

async function outputOf(remote: Remote, run: string, env: Readonly<Record<string, string>>): Promise<readonly string[]> {
  await startJob(remote, 'main', { run, env, workdir: `${remote.baseDir}/workdir` });
  const log = async (): Promise<string> => (await remote.readFile(jobLogPath(remote, 'main'))) ?? '';
  await waitFor('the program to end', async () => (await jobStatus(remote, 'main')).phase === 'ended', {
    timeoutMs: attackMs,
    describe: log,
  });
  return (await log()).split('\n').filter((line) => line !== '' && !line.startsWith('[svc '));
}

/**
 * Runs the attacks in a replica. The provider has the controller's files, another machine that serves, and another
 * home.
 */
async function attack(fixture: LocalProviderFixture, outside: string, socketFolder = outside): Promise<readonly string[]> {
  const { home, runtimeDir, controllerSocket } = fixture.paths;
  const [own, other] = [await fixture.machine('a'), await fixture.machine('b')];
  writeFileSync(fixture.paths.database, 'secret');
  const otherHome = homePaths(join(outside, 'other'), process.getuid?.() ?? 0);
  // For a home with a long path, the runtime folder is not below the home.
  for (const dir of [otherHome.home, otherHome.runtimeDir]) mkdirSync(dir, { recursive: true });
  writeFileSync(otherHome.database, 'secret');
  symlinkSync(home, join(outside, 'link'));
  const hostSocket = join(socketFolder, 'host.sock');
  const servers = await Promise.all([controllerSocket, otherHome.controllerSocket, hostSocket].map(listenOn));
  await startJob(other.remote, 'main', { run: 'exec sleep 1000', env: {}, workdir: other.remote.baseDir });
  const otherSocket = machineFiles(fixture.paths, other.id).socket;
  await waitFor('the other machine to be reached', () => existsSync(otherSocket), {
    describe: () => other.remote.readFile(jobLogPath(other.remote, 'main')),
  });
  try {
    return await outputOf(own.remote, attacks, {
      NODE: process.execPath,
      BASE: own.remote.baseDir,
      HOME_OF_SVC: home,
      LINK_TO_SVC: join(outside, 'link'),
      OTHER_HOME: otherHome.home,
      OTHER_MACHINE: other.remote.baseDir,
      OUTSIDE: String(process.pid),
      CONTROL_SOCKET: controllerSocket,
      OTHER_SOCKET: otherSocket,
      HOST_SOCKET: hostSocket,
      RUNTIME: runtimeDir,
    });
  } finally {
    for (const server of servers) server.close();
    rmSync(otherHome.runtimeDir, { recursive: true, force: true });
  }
}

/** A folder of the host in the home folder, which a replica can see. */
async function withFolder(use: (folder: string) => Promise<void>): Promise<void> {
  const folder = mkdtempSync(join(homedir(), '.svc-test-'));
  try {
    await use(folder);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

const allowed = ['write its folder', 'write /tmp', 'write /dev/shm', 'write /dev/null', 'read the home folder'];
const layer = 'write a layer above the home folder';

async function withHome<Result>(home: string, use: () => Promise<Result>): Promise<Result> {
  vi.stubEnv('HOME', home);
  try {
    return await use();
  } finally {
    vi.unstubAllEnvs();
  }
}

/**
 * A home folder without mounts of the host below it: a user namespace makes no layer above a folder that holds a mount.
 */
async function withPlainHome<Result>(use: () => Promise<Result>): Promise<Result> {
  const home = mkdtempSync(join(homedir(), '.svc-test-'));
  try {
    return await withHome(home, use);
  } finally {
    rmSync(home, { recursive: true, force: true });
  }
}

/** A home folder below /tmp, reached through a symlink. */
async function withHomeBelowTmp<Result>(use: () => Promise<Result>): Promise<Result> {
  return withTempHome((folder) => {
    mkdirSync(join(folder, 'home'));
    symlinkSync(join(folder, 'home'), join(folder, 'link'));
    return withHome(join(folder, 'link'), use);
  });
}

/** The attacks that succeed in isolation of this kind, and the host's folders that they changed. */
async function breaches(kind: IsolationKind, socketFolder?: string): Promise<readonly string[]> {
  let succeeded: readonly string[] = [];
  await withLocalProvider({ isolation: kind }, (fixture) =>
    withFolder(async (folder) => {
      succeeded = await attack(fixture, folder, socketFolder);
    }),
  );
  return [...succeeded, ...['/etc', '/usr', '/var/lib', homedir()].filter((dir) => existsSync(join(dir, 'svc-breach')))];
}

function testAttacks(kind: IsolationKind, rights: readonly string[]): void {
  const expected = rights.map((what) => `MAY: ${what}`);
  const isImpossible = kind === 'root' && !isRoot;
  test.skipIf(isImpossible)(`a replica in isolation (${kind}) cannot reach svc or change the host`, async () => {
    expect(await withPlainHome(() => breaches(kind))).toEqual(expected);
  });
  test.skipIf(isImpossible)(`a replica in isolation (${kind}) cannot reach svc in a home folder below /tmp`, async () => {
    // No layer above the home folder hides this socket.
    await withFolder(async (folder) => {
      expect(await withHomeBelowTmp(() => breaches(kind, folder))).toEqual(expected);
    });
  });
}

testAttacks('root', [...allowed, layer]);
testAttacks('userns', [...allowed, layer]);
needs('bwrap', () => testAttacks('bwrap', allowed));

test.skipIf(!isRoot)('svc is hidden where its file system is mounted a second time', async () => {
  // A folder outside the home folder. A user namespace can make no layer above a folder with a mount of the host, and
  // other tests need such a layer.
  const alias = mkdtempSync('/var/lib/svc-alias-');
  execFileSync('mount', ['--bind', tmpdir(), alias]);
  try {
    await withLocalProvider({}, async (fixture) => {
      const { remote } = await fixture.machine('a');
      writeFileSync(fixture.paths.database, 'secret');
      const path = join(alias, fixture.paths.database.slice(tmpdir().length));
      expect(readFileSync(path, 'utf8')).toBe('secret');
      expect(await outputOf(remote, 'cat "$ALIAS" || true', { ALIAS: path })).toEqual([`cat: ${path}: No such file or directory`]);
    });
  } finally {
    // A replica of another test may be using its copy of the mount now.
    execFileSync('umount', ['--lazy', alias]);
    rmSync(alias, { recursive: true, force: true });
  }
});

test("no process of a replica carries the paths of the host's sockets", async () => {
  await withTempHome(async (folder) => {
    const server = await listenOn(join(folder, 'host.sock'));
    try {
      await withLocalProvider({}, async (fixture) => {
        const { remote } = await fixture.machine('a');
        await startJob(remote, 'main', { run: 'echo begun > begun; exec sleep 1000', env: {}, workdir: remote.baseDir });
        await waitFor('the program to begin', () => existsSync(join(remote.baseDir, 'begun')));
        expect(processesOf(folder)).toEqual([]);
      });
    } finally {
      server.close();
    }
  });
});
