import { spawn, spawnSync, type ChildProcess } from 'node:child_process';
import { copyFileSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { userInfo } from 'node:os';
import { join } from 'node:path';
import type { SshHost } from '../../src/domain/ssh-pool.ts';
import { signalAll } from './signal-all.ts';
import { waitFor } from './wait-for.ts';

/** Where Debian and most others have it; it is not in an ordinary user's PATH. */
const sshdPath = '/usr/sbin/sshd';

/** Why hosts cannot be played here; undefined when they can. */
export const whyNoSshHosts = existsSync(sshdPath) ? undefined : 'openssh-server is not installed';

/** A host on loopback: an sshd of its own, which logs in the very user of the test with another home folder. */
export interface LoopbackHost {
  readonly entry: SshHost;
  /** What programs there find as $HOME. */
  readonly home: string;
  /** Ends the sshd with its connections; programs that were started there go on. */
  readonly stop: () => Promise<void>;
  readonly start: () => Promise<void>;
  /** What sshd said. */
  readonly log: () => string;
}

/** How a host is to be. */
export interface LoopbackHostOptions {
  /** The only commands there are besides the shell's own; default: all of this computer. */
  readonly tools?: readonly string[];
  /** Lines for sshd_config. */
  readonly config?: readonly string[];
  /** Commands of the host's own, by name: shell scripts. */
  readonly programs?: Readonly<Record<string, string>>;
}

function keygen(path: string): void {
  const { status, stderr } = spawnSync('ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', '-f', path], { encoding: 'utf8' });
  if (status !== 0) throw new Error(stderr);
}

function childrenOf(pid: number): readonly number[] {
  const { stdout } = spawnSync('ps', ['-o', 'pid=', '--ppid', String(pid)], { encoding: 'utf8' });
  return stdout.split('\n').flatMap((line) => (line.trim() === '' ? [] : [Number(line)]));
}

let started = 0;

/**
 * An address of 127.0.0.0/8 that is this process's alone, and another port for each of its hosts, below those that the system gives away. A port that
 * was only found free could be somebody else's before sshd has it, or while the host is stopped.
 */
function ownAddress(): { readonly address: string; readonly port: number } {
  // Pids have 22 bits.
  const bytes = [128 + (process.pid >> 16), (process.pid >> 8) & 0xff, process.pid & 0xff];
  started += 1;
  return { address: ['127', ...bytes].join('.'), port: 2_200 + started };
}

/** Starts a host in a folder of its own. */
export async function startLoopbackHost(dir: string, options: LoopbackHostOptions = {}): Promise<LoopbackHost> {
  const home = join(dir, 'home');
  const bin = join(dir, 'bin');
  mkdirSync(home, { recursive: true, mode: 0o700 });
  mkdirSync(bin);
  // Where it parts with its rights as root; made at boot where sshd is a service.
  if (process.getuid?.() === 0) mkdirSync('/run/sshd', { recursive: true });
  const hostKey = join(dir, 'host-key');
  const identityFile = join(dir, 'user-key');
  keygen(hostKey);
  keygen(identityFile);
  copyFileSync(`${identityFile}.pub`, join(dir, 'authorized'));
  for (const name of options.tools ?? [])
    writeFileSync(join(bin, name), `#!/bin/sh\nPATH=/usr/local/bin:/usr/bin:/bin:/usr/sbin exec ${name} "$@"\n`, { mode: 0o755 });
  for (const [name, script] of Object.entries(options.programs ?? {}))
    writeFileSync(join(bin, name), `#!/bin/sh\n${script}\n`, { mode: 0o755 });
  const path = options.tools === undefined ? `${bin}:/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin` : bin;
  const { address, port } = ownAddress();
  const config = join(dir, 'sshd_config');
  const lines = [
    `ListenAddress ${address}:${port}`,
    `HostKey ${hostKey}`,
    `AuthorizedKeysFile ${join(dir, 'authorized')}`,
    `PidFile ${join(dir, 'sshd.pid')}`,
    'StrictModes no',
    'UsePAM no',
    'PasswordAuthentication no',
    'KbdInteractiveAuthentication no',
    'PermitRootLogin prohibit-password',
    'AllowStreamLocalForwarding yes',
    'MaxStartups 100',
    `SetEnv HOME=${home} PATH=${path}`,
    'Subsystem sftp internal-sftp',
    ...(options.config ?? []),
    '',
  ];
  writeFileSync(config, lines.join('\n'));
  const log = join(dir, 'sshd.log');
  writeFileSync(log, '');
  let sshd: ChildProcess | undefined;
  const host: LoopbackHost = {
    home,
    entry: { host: address, user: userInfo().username, port, identityFile, proxyJump: undefined, hourlyUsd: 0 },
    log: () => readFileSync(log, 'utf8'),
    async start() {
      sshd = spawn(sshdPath, ['-D', '-f', config, '-E', log], { stdio: 'ignore' });
      await waitFor('sshd', () => readFileSync(log, 'utf8').includes(`Server listening on ${address}`), { describe: host.log });
    },
    async stop() {
      const running = sshd;
      sshd = undefined;
      if (running?.pid !== undefined && running.exitCode === null && running.signalCode === null) {
        const ended = new Promise((resolve) => running.once('exit', resolve));
        // Connections are processes of their own; a daemon that stands still makes no more of them.
        running.kill('SIGSTOP');
        signalAll(childrenOf(running.pid), 'SIGKILL');
        running.kill('SIGKILL');
        await ended;
      }
      writeFileSync(log, '');
    },
  };
  try {
    await host.start();
  } catch (error) {
    await host.stop();
    throw error;
  }
  return host;
}
