import { spawn } from 'node:child_process';
import type { Clock } from '../../shared/clock.ts';
import { exitCodes } from '../../shared/error-codes.ts';
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
 * serve after `timeoutMs` or until `stopping` aborts, in which cases it is killed.
 */
export function startSuccessor(inheritance: Inheritance, clock: Clock, timeoutMs: number, stopping: AbortSignal): Promise<number> {
  const { configPath, fds, predecessors } = inheritance;
  const argv = [...process.execArgv, programEntry('balancer/main'), configPath, String(fds.length), String(predecessors)];
  const child = spawn(process.execPath, argv, { detached: true, stdio: ['ignore', 'inherit', 'inherit', ...fds, 'ipc'] });
  return new Promise((resolve, reject) => {
    const giveUp = (why: string): void => {
      child.kill('SIGKILL');
      reject(new Error(why));
    };
    const onAbort = (): void => giveUp('This process is to end.');
    stopping.addEventListener('abort', onAbort, { once: true });
    const cancelTimer = clock.after(timeoutMs, () => giveUp(`It does not serve after ${timeoutMs / 1_000} s.`));
    const cancel = (): void => {
      cancelTimer();
      stopping.removeEventListener('abort', onAbort);
    };
    child.once('error', (error) => {
      cancel();
      reject(error);
    });
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

// oxlint-disable-next-line unicorn/no-process-exit -- the end of a process that nobody knows of
const endUnknown = (): void => process.exit(exitCodes.conflict);

/**
 * Ends this process when its predecessor ends before it was told that we serve: nobody would know of us then and ever end us, and whoever needs a
 * balancer starts one.
 */
export function endWithPredecessor(): void {
  if (process.connected) process.once('disconnect', endUnknown);
  else endUnknown();
}

/** Tells our predecessor that we serve. */
export function tellPredecessor(): void {
  process.off('disconnect', endUnknown);
  if (!process.connected) return;
  process.send?.('serving', undefined, undefined, () => {
    // It may have cut the link already.
    if (process.connected) process.disconnect();
  });
}
