import { execFileSync } from 'node:child_process';
import { mkdirSync } from 'node:fs';
import { afterAll, beforeAll, describe } from 'vitest';
import { endSshConnections, SshRemote, type SshAddressSettings, type SshTarget } from '../../src/remote/ssh/index.ts';
import { systemClock } from '../../src/shared/clock.ts';
import { homePaths, type HomePaths } from '../../src/shared/paths.ts';
import { signalAll } from '../support/signal-all.ts';
import { withTempHome } from '../support/temp-home.ts';
import { whyNoTestSshHosts } from '../testbed/hosts/needs.ts';
import { claimTestSshHosts, type TestSshHostOptions, type TestSshHost, type TestSshHosts } from '../testbed/hosts/test-hosts.ts';

/** A Node binary to install on machines. */
export const nodeBinary = process.execPath;

const skipReason = whyNoTestSshHosts();

/**
 * Groups tests over machines of a testbed; each machine is created on first use. Skipped by name and with the reason
 * where the testbed cannot run.
 */
export function describeSshHosts(
  name: string,
  tests: (hostOf: (name: string, options?: TestSshHostOptions) => Promise<TestSshHost>) => void,
): void {
  describe.skipIf(skipReason !== undefined)(`${name}${skipReason === undefined ? '' : ` (left out: ${skipReason})`}`, () => {
    let hosts: TestSshHosts;
    const machines = new Map<string, Promise<TestSshHost>>();
    beforeAll(async () => {
      hosts = await claimTestSshHosts();
    });
    afterAll(async () => {
      await hosts.release();
    });
    tests((machine, options) => {
      const known = machines.get(machine) ?? hosts.up(machine, options);
      machines.set(machine, known);
      return known;
    });
  });
}

/** Options of a test's remote. */
export interface RemoteOptions {
  readonly target?: Partial<SshTarget>;
  readonly address?: SshAddressSettings;
  readonly environment?: Readonly<Record<string, string>>;
}

let count = 0;

/** Opens a remote of the given home for a new folder on a machine. */
export async function openRemote(paths: HomePaths, host: TestSshHost, options: RemoteOptions = {}): Promise<SshRemote> {
  count += 1;
  const baseDir = `/home/${host.user}/t${process.pid}-${count}`;
  await host.exec('install', '-d', '-o', host.user, '-g', host.user, baseDir);
  return remoteAt(paths, host, baseDir, options);
}

/** As `openRemote`, with a folder that exists. */
export function remoteAt(
  paths: HomePaths,
  host: TestSshHost,
  baseDir: string,
  { target = {}, address, environment = {} }: RemoteOptions = {},
): SshRemote {
  return new SshRemote({
    target: () => Promise.resolve(host.target(target)),
    baseDir,
    enter: [],
    environment,
    ...(address === undefined ? {} : { address }),
    paths,
    clock: systemClock,
  });
}

/** Runs `use` with a new home, and closes its connections to the SSH host afterwards. */
export async function withHome<Result>(host: TestSshHost, use: (paths: HomePaths) => Promise<Result>): Promise<Result> {
  return withTempHome(async (home) => {
    const paths = homePaths(home, process.getuid?.() ?? 0);
    mkdirSync(paths.runtimeDir, { recursive: true, mode: 0o700 });
    try {
      return await use(paths);
    } finally {
      await endSshConnections(host.target(), paths, systemClock);
      // The host object does not know connections to targets that a test changed.
      signalSsh(home);
    }
  });
}

/** Runs `use` with a remote for a new folder on a machine. */
export function withRemote<Result>(
  host: TestSshHost,
  use: (remote: SshRemote, paths: HomePaths) => Promise<Result>,
  options: RemoteOptions = {},
): Promise<Result> {
  return withHome(host, async (paths) => use(await openRemote(paths, host, options), paths));
}

/** Returns the pids of this machine's ssh processes that name the home in their arguments. */
export function sshProcessesOf(home: string): readonly number[] {
  try {
    const listing = execFileSync('pgrep', ['-f', '-x', `ssh .*${home}/.*`], { encoding: 'utf8' });
    return listing.trim().split('\n').map(Number);
  } catch {
    // No such process.
    return [];
  }
}

/** Signals this machine's ssh processes that name the home. Ending a master soon ends its sessions too. */
export function signalSsh(home: string, signal: 'SIGKILL' | 'SIGSTOP' = 'SIGKILL'): void {
  signalAll(sshProcessesOf(home), signal);
}
