import { spawn } from 'node:child_process';
import type { Clock } from '../../shared/clock.ts';
import { hasErrno, messageOf, SvcError } from '../../shared/errors.ts';
import { sshEnvironment } from './ssh-target.ts';

/** How a short run of ssh ended. `exitCode` undefined: it had to be killed. */
export interface SshOutcome {
  readonly exitCode: number | undefined;
  readonly said: string;
}

interface SshRun {
  readonly userConfig: boolean;
  readonly timeoutMs: number;
  readonly clock: Clock;
  readonly signal?: AbortSignal | undefined;
}

/** Bytes; ssh never prints so much. */
const maxSaid = 65_536;

/** Runs ssh without a session, to open or control a connection. Rejects when cancelled. */
export function runSsh(args: readonly string[], { userConfig, timeoutMs, clock, signal }: SshRun): Promise<SshOutcome> {
  return new Promise((resolve, reject) => {
    signal?.throwIfAborted();
    const child = spawn('ssh', args, { env: sshEnvironment(userConfig), detached: true, stdio: ['ignore', 'pipe', 'pipe'] });
    let said = '';
    let isEnded = false;
    const collect = (chunk: Buffer): void => {
      if (said.length < maxSaid) said += chunk.toString('utf8');
    };
    child.stdout.on('data', collect);
    child.stderr.on('data', collect);
    const kill = (): void => {
      isEnded = true;
      killGroup(child.pid);
    };
    const cancelTimer = clock.after(timeoutMs, kill);
    signal?.addEventListener('abort', kill, { once: true });
    const settle = (finish: () => void): void => {
      cancelTimer();
      signal?.removeEventListener('abort', kill);
      finish();
    };
    child.once('error', (error) => settle(() => reject(noSsh(error))));
    // Not `close`: a connection that stays in the background may hold the outputs open for a moment.
    child.once('exit', (code) => {
      setImmediate(() => {
        child.stdout.destroy();
        child.stderr.destroy();
        settle(() => {
          if (signal?.aborted === true) reject(signal.reason instanceof Error ? signal.reason : new Error(String(signal.reason)));
          else resolve({ exitCode: isEnded ? undefined : (code ?? undefined), said });
        });
      });
    });
  });
}

/** Kills a process, which must lead its group, and the group. Succeeds when they no longer exist. */
export function killGroup(pid: number | undefined): void {
  if (pid === undefined) return;
  try {
    process.kill(-pid, 'SIGKILL');
  } catch (error) {
    if (!hasErrno(error, 'ESRCH', 'EPERM')) throw error;
  }
}

/** The error when this machine has no ssh. */
export function noSsh(error: Error): Error {
  if (!hasErrno(error, 'ENOENT')) return error;
  return new SvcError('SVC_HOST_UNFIT', `There is no ssh on this machine: ${messageOf(error)}`, {
    hint: 'Install it: apt-get install openssh-client',
  });
}
