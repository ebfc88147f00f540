import { join } from 'node:path';
import { shortFingerprint } from '../../shared/hex.ts';
import type { HomePaths } from '../../shared/paths.ts';
import type { SshTarget } from './ssh-target.ts';

/**
 * The purpose of a connection: `x` commands, `c` copies, `f` forwards, `s0`, `s1` … long-lived sessions. Each has its
 * own: a copy must not delay requests, and an sshd allows ten sessions per connection (`MaxSessions`).
 */
export type Lane = 'x' | 'c' | 'f' | `s${number}`;

/** Local files of one machine. Short names: Linux allows 107 bytes for a socket's path; ssh uses 17 for a while. */
export interface ConnectionFiles {
  /** Shared by all machines; mode 0700. */
  readonly socketDir: string;
  /** Of this machine alone: its host key, and those of its jump hosts. */
  readonly knownHosts: string;
  /** The machine's name in `knownHosts`. */
  readonly alias: string;
  control(lane: Lane): string;
}

/** The same target has the same files in every process. Pure. */
export function connectionFiles(paths: HomePaths, target: SshTarget): ConnectionFiles {
  const socketDir = join(paths.runtimeDir, 's');
  const machine = shortFingerprint([target.name, target.host, target.port]);
  const login = shortFingerprint(target);
  return {
    socketDir,
    knownHosts: join(paths.sshDir, 'known', machine),
    alias: `svc-${machine}`,
    control: (lane) => join(socketDir, `${login}${lane}`),
  };
}
