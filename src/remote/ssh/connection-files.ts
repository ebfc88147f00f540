import { join } from 'node:path';
import { fingerprint } from '../../shared/fingerprint.ts';
import type { HomePaths } from '../../shared/paths.ts';
import type { SshTarget } from './ssh-target.ts';

/**
 * What a connection is for. Each purpose has a connection of its own, so that a copy does not hold up requests, and because an sshd allows ten
 * sessions on one (`MaxSessions`): `x` commands, `c` copies, `f` forwards, `s0`, `s1` … long-lived sessions.
 */
export type Lane = 'x' | 'c' | 'f' | `s${number}`;

/** Files of one machine on this side. Names are short: Linux allows 107 bytes for a socket's path, of which ssh takes 17 for a while. */
export interface ConnectionFiles {
  /** Of all machines; mode 0700. */
  readonly socketDir: string;
  /** Of this machine alone: its host key, and those of machines on the way to it. */
  readonly knownHosts: string;
  /** The machine's name in there. */
  readonly alias: string;
  control(lane: Lane): string;
}

/** Pure. The same target has the same files in every process. */
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

/** Files of the ways to one machine's ports. `machine` tells it from all others; several machines may share a host. */
export function wayFiles(paths: HomePaths, machine: readonly [name: string, baseDir: string]): WayFiles {
  const name = digest(machine);
  return {
    socket: (to) => join(paths.runtimeDir, 's', `w${name}.${typeof to === 'number' ? to : digest(to)}`),
    record: join(paths.sshDir, 'ways', name),
  };
}

/** What `wayFiles` returns. */
export interface WayFiles {
  /** The socket file here that leads to a port there, or to a socket. */
  socket(to: number | string): string;
  /** Which ways there are, for whoever comes next. */
  readonly record: string;
}

/** Ten hex digits: 40 bits tell the machines of one home apart. */
function digest(value: unknown): string {
  return fingerprint(JSON.stringify(value)).slice(0, 10);
}
