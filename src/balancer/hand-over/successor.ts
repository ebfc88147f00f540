import { spawn } from 'node:child_process';
import type { Clock } from '../../shared/clock.ts';
import { exitCodes } from '../../shared/error-codes.ts';
import { programEntry } from '../../shared/program-files.ts';

/** After the standard streams. */
const firstInherited = 3;

interface Inheritance {
  readonly configPath: string;
  /** Listening sockets, by their numbers in this process. */
  readonly fds: readonly number[];
  /** Processes that still have requests after the hand-over: this one, and its own predecessors. */
  readonly predecessors: number;
}

/** What a successor reads from its command line. */
export interface Inherited {
  readonly fds: readonly number[];
  /** 0 for a standby: its predecessor was killed. */
  readonly predecessors: number;
}

/**
 * Starts the process that replaces this one, in its own session. Both have the same listening sockets, so connections
 * that are not yet accepted survive the end of either. Resolves with the successor's process id once it serves. Rejects
 * when it ends first; also kills it and rejects after `timeoutMs` or when `stopping` aborts.
 */
export function startSuccessor(inheritance: Inheritance, clock: Clock, timeoutMs: number, stopping: AbortSignal): Promise<number> {
  const { configPath, fds, predecessors } = inheritance;
  const argv = [...process.execArgv, programEntry('balancer/main'), configPath, String(fds.length), String(predecessors)];
  const child = spawn(process.execPath, argv, { detached: true, stdio: ['ignore', 'inherit', 'inherit', ...fds, 'ipc'] });
  return new Promise((resolve, reject) => {
    const giveUp = (reason: string): void => {
      child.kill('SIGKILL');
      reject(new Error(reason));
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

/** Reads the arguments after the config file's path. Undefined when this process inherits nothing. */
export function readInherited(sockets: string | undefined, predecessors: string | undefined): Inherited | undefined {
  if (sockets === undefined) return undefined;
  return { fds: Array.from({ length: Number(sockets) }, (_, index) => firstInherited + index), predecessors: Number(predecessors) };
}

// oxlint-disable-next-line unicorn/no-process-exit -- no other process knows of this one
const endUnknown = (): void => process.exit(exitCodes.conflict);

/**
 * Ends this process if its predecessor ends before this one serves: no other process would know of it. The controller
 * or edge proxy then starts a new balancer.
 */
export function endWithPredecessor(): void {
  if (process.connected) process.once('disconnect', endUnknown);
  else endUnknown();
}

/** Reports to the predecessor that this process serves. */
export function notifyPredecessor(): void {
  process.off('disconnect', endUnknown);
  if (!process.connected) return;
  process.send?.('serving', undefined, undefined, () => {
    // The predecessor may have cut the link already.
    if (process.connected) process.disconnect();
  });
}
