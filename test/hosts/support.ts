import { execFileSync } from 'node:child_process';
import { mkdirSync } from 'node:fs';
import { afterAll, beforeAll, describe } from 'vitest';
import { endSshConnections, SshRemote, type SshAddressSettings, type SshTarget } from '../../src/remote/ssh/index.ts';
import { systemClock } from '../../src/shared/clock.ts';
import { homePaths, type HomePaths } from '../../src/shared/paths.ts';
import { signalAll } from '../support/signal-all.ts';
import { withTempHome } from '../support/temp-home.ts';
import { whyNoTestHosts } from '../testbed/hosts/needs.ts';
import { claimTestHosts, type HostOptions, type TestHost, type TestHosts } from '../testbed/hosts/test-hosts.ts';

/** A Node binary that machines may have. */
export const nodeBinary = process.execPath;

const skipReason = whyNoTestHosts();

/** Tests over machines of a testbed; each machine is made when it is first asked for. Left out, by name and with the reason, where there can be none. */
export function describeHosts(name: string, tests: (hostOf: (name: string, options?: HostOptions) => Promise<TestHost>) => void): void {
  describe.skipIf(skipReason !== undefined)(`${name}${skipReason === undefined ? '' : ` (left out: ${skipReason})`}`, () => {
    let hosts: TestHosts;
    const machines = new Map<string, Promise<TestHost>>();
    beforeAll(async () => {
      hosts = await claimTestHosts();
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

/** What a remote of a test is made from. */
export interface RemoteOptions {
  readonly target?: Partial<SshTarget>;
  readonly address?: SshAddressSettings;
  readonly environment?: Readonly<Record<string, string>>;
}

let count = 0;

/** A new folder on a machine, seen through a remote of the given home. */
export async function openRemote(paths: HomePaths, host: TestHost, options: RemoteOptions = {}): Promise<SshRemote> {
  count += 1;
  const baseDir = `/home/${host.user}/t${process.pid}-${count}`;
  await host.exec('install', '-d', '-o', host.user, '-g', host.user, baseDir);
  return remoteAt(paths, host, baseDir, options);
}

/** As `openRemote`, with a folder that is there. */
export function remoteAt(
  paths: HomePaths,
  host: TestHost,
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

/** Runs `use` with a home of its own, and ends the connections to the host that were made from there. */
export async function withHome<Result>(host: TestHost, use: (paths: HomePaths) => Promise<Result>): Promise<Result> {
  return withTempHome(async (home) => {
    const paths = homePaths(home, process.getuid?.() ?? 0);
    mkdirSync(paths.runtimeDir, { recursive: true, mode: 0o700 });
    try {
      return await use(paths);
    } finally {
      await endSshConnections(host.target(), paths, systemClock);
      // Connections to targets that a test changed are not found by the host's own.
      signalSsh(home);
    }
  });
}

/** Runs `use` with a remote for a new folder on a machine. */
export function withRemote<Result>(
  host: TestHost,
  use: (remote: SshRemote, paths: HomePaths) => Promise<Result>,
  options: RemoteOptions = {},
): Promise<Result> {
  return withHome(host, async (paths) => use(await openRemote(paths, host, options), paths));
}

/** Pids of the ssh processes of this machine that name the home among their arguments. */
export function sshProcessesOf(home: string): readonly number[] {
  try {
    const listing = execFileSync('pgrep', ['-f', '-x', `ssh .*${home}/.*`], { encoding: 'utf8' });
    return listing.trim().split('\n').map(Number);
  } catch {
    // None.
    return [];
  }
}

/** Sends a signal to the ssh processes of this machine that name the home: the end of one is soon that of those that use its connection. */
export function signalSsh(home: string, signal: 'SIGKILL' | 'SIGSTOP' = 'SIGKILL'): void {
  signalAll(sshProcessesOf(home), signal);
}
