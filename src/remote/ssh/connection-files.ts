import { join } from 'node:path';
import { fingerprint } from '../../shared/hex.ts';
import type { HomePaths } from '../../shared/paths.ts';
import type { SshTarget } from './ssh-target.ts';

/**
 * The purpose of a connection. Each purpose has its own connection: a copy must not delay requests, and an sshd allows
 * ten sessions per connection (`MaxSessions`). `x` commands, `c` copies, `f` forwards, `s0`, `s1` … long-lived
 * sessions.
 */
export type Lane = 'x' | 'c' | 'f' | `s${number}`;

/**
 * Local files of one machine. Names are short: Linux allows 107 bytes for a socket's path, of which ssh uses 17 for a
 * while.
 */
export interface ConnectionFiles {
  /** Shared by all machines; mode 0700. */
  readonly socketDir: string;
  /** For this machine alone: its host key, and those of its jump hosts. */
  readonly knownHosts: string;
  /** The machine's name in `knownHosts`. */
  readonly alias: string;
  control(lane: Lane): string;
}

/** The same target has the same files in every process. Pure. */
export function connectionFiles(paths: HomePaths, target: SshTarget): ConnectionFiles {
  const socketDir = join(paths.runtimeDir, 's');
  const machine = digest([target.name, target.host, target.port]);
  const login = digest(target);
  return {
    socketDir,
    knownHosts: join(paths.sshDir, 'known', machine),
    alias: `svc-${machine}`,
    control: (lane) => join(socketDir, `${login}${lane}`),
  };
}

/**
 * Files of the forwards to one machine's ports. `machine` identifies it among all others; several machines may share an
 * SSH host.
 */
export function tunnelFiles(paths: HomePaths, machine: readonly [name: string, baseDir: string]): TunnelFiles {
  const name = digest(machine);
  return {
    socket: (to) => join(paths.runtimeDir, 's', `w${name}.${typeof to === 'number' ? to : digest(to)}`),
    record: join(paths.sshDir, 'ways', name),
  };
}

/** The files that `tunnelFiles` returns. */
export interface TunnelFiles {
  /** The local socket file for a port or a socket on the machine. */
  socket(to: number | string): string;
  /** Lists the forwards, for processes that start later. */
  readonly record: string;
}

/** Ten hex digits: 40 bits are enough to distinguish the machines of one home. */
function digest(value: unknown): string {
  return fingerprint(JSON.stringify(value)).slice(0, 10);
}
