import { spawn } from 'node:child_process';
import { systemClock } from '../../src/shared/clock.ts';
import { wholeEnv } from '../../src/shared/env.ts';
import { SvcError } from '../../src/shared/errors.ts';
import { runSession, type SessionCarrier } from '../../src/remote/session/run-session.ts';
import type { SessionMachine, SessionRequest } from '../../src/remote/session/session-machine.ts';
import { bootCommand } from '../../src/remote/session/session-script.ts';
import type { Tool } from './needs.ts';

/** A machine that is this computer: each session is a shell, as with sshd. */
export interface ShellMachine extends SessionMachine {
  /** The requests of all sessions so far. */
  readonly requests: readonly SessionRequest[];
  /** Cuts all sessions, as a broken connection does. */
  readonly cut: () => void;
}

/** Creates one. `shell`: the program and arguments of `sh`; `env`: added to the environment of its shells. */
export function shellMachine(shell: readonly string[], env: Readonly<Record<string, string>> = {}): ShellMachine {
  const requests: SessionRequest[] = [];
  const cuts = new Set<() => void>();
  const open = (): SessionCarrier => {
    // A process group of its own, as for each session of an sshd.
    const child = spawn('/bin/sh', ['-c', bootCommand], { detached: true, env: { ...wholeEnv(), ...env }, stdio: 'pipe' });
    const { promise: closed, resolve } = Promise.withResolvers<string>();
    const kill = (): void => {
      for (const stream of [child.stdin, child.stdout, child.stderr]) stream.destroy();
      resolve('');
    };
    cuts.add(kill);
    child.once('close', kill);
    return { stdin: child.stdin, stdout: child.stdout, stderr: child.stderr, closed, kill };
  };
  return {
    name: 'this',
    host: 'this',
    requests,
    session(request) {
      requests.push(request);
      const { argv } = request;
      return runSession(open, { ...request, argv: argv[0] === 'sh' ? [...shell, ...argv.slice(1)] : argv }, systemClock);
    },
    lost: (what) => new SvcError('SVC_SSH', `The connection to this ${what}.`),
    cut: () => cuts.forEach((cut) => cut()),
  };
}

/** The shells that SSH hosts may have as /bin/sh, and the programs that tests of each need. */
export const shells: readonly { readonly shell: readonly string[]; readonly tools: readonly Tool[] }[] = [
  { shell: ['sh'], tools: [] },
  { shell: ['bash'], tools: [] },
  { shell: ['busybox', 'sh'], tools: ['busybox'] },
];
