import { readdirSync, rmSync, writeFileSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { Clock } from '../../shared/clock.ts';
import { hasErrno, SvcError } from '../../shared/errors.ts';
import { isAlive, signalProcess, type ProcessIdentity } from '../../shared/process-identity.ts';
import { cookieVariable } from '../machine-environment.ts';
import type { MachineFiles, MachineRecord } from './machine-record.ts';
import { killProcessesWith } from './marked-processes.ts';
import { readIfThere } from './read-if-there.ts';
import { removeTree } from './remove-tree.ts';

/** How long the kernel may take to end killed processes; those in the middle of disk access take longest. */
const endTimeoutMs = 30_000;
const pausesMs = [5, 10, 20, 50, 100] as const;

/** What tearing down needs. */
export interface Teardown {
  readonly files: MachineFiles;
  /** Undefined when the folder is only half there. */
  readonly record: MachineRecord | undefined;
  readonly clock: Clock;
  readonly signal: AbortSignal | undefined;
}

/**
 * Ends everything of a machine and removes what it made, in an order that lets it be taken up again after a crash at any line: the record, with
 * the cookie by which its processes are found, goes last.
 */
export async function tearDown(teardown: Teardown): Promise<void> {
  const { files, clock } = teardown;
  try {
    // From now on nothing more is started in it.
    writeFileSync(files.destroying, '');
  } catch (error) {
    if (!hasErrno(error, 'ENOENT', 'ENOTDIR')) throw error;
    removeSockets(files);
    return;
  }
  await endProcesses(teardown);
  await removeTree(files.dir, clock, ['machine.json', 'destroying']);
  // Whatever was being started just then found its scripts gone; its first steps may still have been taken.
  await endProcesses(teardown);
  removeSockets(files);
  await rm(files.record, { force: true });
  await removeTree(files.dir, clock);
}

/** Ends everything that runs on a machine. The namespaces' first processes go first: with them the kernel ends all others inside. */
export async function endProcesses({ files, record, clock, signal }: Teardown): Promise<void> {
  const deadline = clock.monotonic() + endTimeoutMs;
  let left: readonly ProcessIdentity[] = [];
  for (let round = 0; ; round += 1) {
    signal?.throwIfAborted();
    for (const identity of firstProcesses(files.dir)) signalProcess(identity, 'SIGKILL');
    const killed = record === undefined ? [] : await killProcessesWith(`${cookieVariable}=${record.cookie}`);
    // One that is ending has no environment any more while it gives its memory back, but its ports and GPUs still.
    left = [...left, ...killed].filter(isAlive);
    if (killed.length + left.length === 0 && firstProcesses(files.dir).every((identity) => !signalProcess(identity, 'SIGKILL'))) return;
    if (clock.monotonic() >= deadline) {
      const pids = left.map(({ pid }) => pid).join(', ');
      throw new SvcError('SVC_MACHINE_LOST', `Processes of the local machine ${record?.id} cannot be ended: ${pids}.`, {
        hint: 'Processes of another user must be ended by that user.',
      });
    }
    await clock.sleep(pausesMs[Math.min(round, pausesMs.length - 1)] ?? 0, signal);
  }
}

/** The first process of each of a machine's namespaces, as enter.sh noted them. */
function firstProcesses(dir: string): readonly ProcessIdentity[] {
  let names: readonly string[];
  try {
    names = readdirSync(dir);
  } catch (error) {
    if (hasErrno(error, 'ENOENT', 'ENOTDIR')) return [];
    throw error;
  }
  return names
    .filter((name) => name.startsWith('init.'))
    .flatMap((name) => {
      // Another process may be removing the same machine.
      const match = /^(\d+) (\d+) (\S*)$/.exec(readIfThere(join(dir, name)).trim());
      return match === null ? [] : [{ pid: Number(match[1]), startTicks: Number(match[2]), bootId: match[3] ?? '' }];
    });
}

function removeSockets(files: MachineFiles): void {
  for (const path of [files.socket, `${files.socket}.new`, files.proxySocket]) rmSync(path, { force: true });
}
