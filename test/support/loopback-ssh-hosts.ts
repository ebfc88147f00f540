import { spawn, spawnSync, type ChildProcess } from 'node:child_process';
import { copyFileSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { userInfo } from 'node:os';
import { join } from 'node:path';
import type { SshHost } from '../../src/domain/config.ts';
import { signalAll } from './signal-all.ts';
import { waitFor } from './wait-for.ts';

/** The path on Debian and most other systems; it is not in an ordinary user's PATH. */
const sshdPath = '/usr/sbin/sshd';

/** An SSH host on loopback: a separate sshd, which logs in the test's own user with another home folder. */
export interface LoopbackSshHost {
  readonly entry: SshHost;
  /** $HOME of its programs. */
  readonly home: string;
  /** Ends the sshd with its connections; programs that it started continue. */
  readonly stop: () => Promise<void>;
  readonly start: () => Promise<void>;
  /** The log of sshd. */
  readonly log: () => string;
}

/** Options of such a host. */
export interface LoopbackSshHostOptions {
  /** The available commands besides shell builtins; default: all of this computer. */
  readonly tools?: readonly string[];
  /** Lines for sshd_config. */
  readonly config?: readonly string[];
  /** The host's own commands, by name: shell scripts. */
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
 * A 127.0.0.0/8 address of this process alone, with a different port for each host, below the ephemeral ports. A port
 * that was merely free could be taken before sshd binds it, or while the host is stopped.
 */
function ownAddress(): { readonly address: string; readonly port: number } {
  // Pids have 22 bits.
  const bytes = [128 + (process.pid >> 16), (process.pid >> 8) & 0xff, process.pid & 0xff];
  started += 1;
  return { address: ['127', ...bytes].join('.'), port: 2_200 + started };
}

/** Starts a host in a new folder. */
export async function startLoopbackSshHost(dir: string, options: LoopbackSshHostOptions = {}): Promise<LoopbackSshHost> {
  const home = join(dir, 'home');
  const bin = join(dir, 'bin');
  mkdirSync(home, { recursive: true, mode: 0o700 });
  mkdirSync(bin);
  // The privilege separation folder of sshd as root; the boot creates it where sshd is a service.
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
  const host: LoopbackSshHost = {
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
        // Connections are separate processes; a stopped daemon accepts no more.
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
