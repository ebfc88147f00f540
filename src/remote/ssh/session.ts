import { spawn } from 'node:child_process';
import type { SessionCarrier } from '../session/run-session.ts';
import { bootCommand } from '../session/session-script.ts';
import { clientOptions } from './ssh-master.ts';
import { noSsh } from './ssh-process.ts';
import { sshEnvironment } from './ssh-target.ts';

/** An ssh that carries one session over the connection held at `control`. */
export function openSession(control: string): SessionCarrier {
  const child = spawn('ssh', [...clientOptions(control), '-T', 'machine', bootCommand], { env: sshEnvironment(false), stdio: 'pipe' });
  const closed = new Promise<string>((resolve, reject) => {
    child.once('error', (error) => reject(noSsh(error)));
    child.once('close', () => resolve(''));
  });
  return { stdin: child.stdin, stdout: child.stdout, stderr: child.stderr, closed, kill: () => void child.kill('SIGKILL') };
}
