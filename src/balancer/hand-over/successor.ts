import { spawn } from 'node:child_process';
import type { Clock } from '../../shared/clock.ts';
import { programEntry } from '../../shared/program-files.ts';

/** Descriptors 0 to 2 are the standard ones. */
const firstInherited = 3;

/** What a successor is given. */
export interface Inheritance {
  readonly configPath: string;
  /** Listening sockets, by their numbers here. */
  readonly fds: readonly number[];
  /** Processes that go on with their connections and will follow it: this one, and those before it that are not done. */
  readonly predecessors: number;
}

/** What a successor finds on its command line. */
export interface Inherited {
  readonly fds: readonly number[];
  readonly predecessors: number;
}

/**
 * Starts the process that is to take our place, in a session of its own. The listening sockets are the same ones in both processes, so connections
 * that nobody has accepted yet are lost by neither's end. Resolves with its process id when it serves; rejects when it ends before, or does not
 * serve after `timeoutMs`, in which case it is killed.
 */
export function startSuccessor(inheritance: Inheritance, clock: Clock, timeoutMs: number): Promise<number> {
  const { configPath, fds, predecessors } = inheritance;
  const argv = [...process.execArgv, programEntry('balancer/main'), configPath, String(fds.length), String(predecessors)];
  const child = spawn(process.execPath, argv, { detached: true, stdio: ['ignore', 'inherit', 'inherit', ...fds, 'ipc'] });
  return new Promise((resolve, reject) => {
    const cancel = clock.after(timeoutMs, () => {
      child.kill('SIGKILL');
      reject(new Error(`It does not serve after ${timeoutMs / 1_000} s.`));
    });
    child.once('error', reject);
    child.once('exit', (code, signal) => {
      cancel();
      reject(new Error(`It ended with ${code === null ? (signal ?? 'a signal') : `code ${code}`}.`));
    });
    child.once('message', () => {
      cancel();
      child.disconnect();
      child.unref();
      resolve(child.pid ?? 0);
    });
  });
}

/** Reads what follows the path of the config file on our command line: nothing, when this process has no predecessor. */
export function readInherited(sockets: string | undefined, predecessors: string | undefined): Inherited | undefined {
  if (sockets === undefined) return undefined;
  return { fds: Array.from({ length: Number(sockets) }, (_, index) => firstInherited + index), predecessors: Number(predecessors) };
}

/** Tells our predecessor that we serve. */
export function tellPredecessor(): void {
  if (!process.connected) return;
  process.send?.('serving', undefined, undefined, () => {
    // It may have cut the link already.
    if (process.connected) process.disconnect();
  });
}
