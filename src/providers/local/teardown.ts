import { existsSync, readdirSync, rmSync, rmdirSync, writeFileSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { basename, join, normalize } from 'node:path';
import { type Backoff, delayMs } from '../../shared/backoff.ts';
import type { Clock } from '../../shared/clock.ts';
import { SvcError, hasErrno } from '../../shared/errors.ts';
import { type ProcessIdentity, isAlive, signalProcess } from '../../shared/system/process-identity.ts';
import { processesWith } from './marked-processes.ts';
import type { MachineFiles, MachineRecord } from './machine-store.ts';
import { readIfThere } from '../../shared/system/files.ts';
import { removeTree } from './remove-tree.ts';

/** The kernel's time to end killed processes; a process in disk access takes longest. */
const endTimeoutMs = 30_000;
const groupsDir = '/sys/fs/cgroup';

const roundBackoff: Backoff = { firstMs: 5, longestMs: 100 };

interface Teardown {
  readonly files: MachineFiles;
  /** Undefined when the folder is incomplete. */
  readonly record: MachineRecord | undefined;
  readonly clock: Clock;
  readonly signal: AbortSignal | undefined;
}

/**
 * Ends a machine's processes and removes its files. Removes the record last, because its cookie identifies the
 * processes: a later call can then resume after a crash at any line.
 */
export async function tearDown(teardown: Teardown): Promise<void> {
  const { files, clock } = teardown;
  try {
    // From now on nothing is started on the machine.
    writeFileSync(files.destroying, '');
  } catch (error) {
    if (hasErrno(error, 'ENOENT', 'ENOTDIR')) {
      removeSockets(files);
      return;
    }
    // A full disk has no inode for the mark. The removal frees inodes, so it goes on without the mark.
    if (!hasErrno(error, 'ENOSPC', 'EDQUOT')) throw error;
  }
  await endProcesses(teardown);
  await removeTree(files.dir, clock, ['machine.json', 'destroying', 'group']);
  // A program that was being started fails without its scripts. Its first processes may still run.
  await endProcesses(teardown);
  removeSockets(files);
  await rm(files.record, { force: true });
  await removeTree(files.dir, clock);
}

/** Ends everything on a machine. Kills the namespaces' first processes first: with them the kernel ends the others. */
export async function endProcesses({ files, record, clock, signal }: Teardown): Promise<void> {
  const deadline = clock.monotonic() + endTimeoutMs;
  let left: readonly ProcessIdentity[] = [];
  for (let round = 1; ; round += 1) {
    signal?.throwIfAborted();
    const isGroupGone = endGroup(files);
    for (const identity of firstProcesses(files.dir)) signalProcess(identity, 'SIGKILL');
    const killed = record === undefined ? [] : await killProcessesWith(record.cookie);
    // While the kernel reclaims its memory, an ending process has no environment but still holds its ports and GPUs.
    left = [...left, ...killed].filter(isAlive);
    if (
      isGroupGone &&
      killed.length + left.length === 0 &&
      firstProcesses(files.dir).every((identity) => !signalProcess(identity, 'SIGKILL'))
    )
      return;
    if (clock.monotonic() >= deadline) {
      const pids = left.map(({ pid }) => pid).join(', ');
      throw new SvcError('SVC_MACHINE_LOST', `Processes of the local machine ${record?.id} cannot be ended: ${pids}.`, {
        hint: 'Processes of another user must be ended by that user.',
      });
    }
    await clock.sleep(delayMs(roundBackoff, round), signal);
  }
}

/**
 * Kills everything in the machine's control group and removes the group. Returns whether it is gone. The name protects
 * groups of others from a damaged record.
 */
function endGroup({ dir, group }: MachineFiles): boolean {
  const path = readIfThere(group).trim();
  if (!path.startsWith(`${groupsDir}/`) || normalize(path) !== path || basename(path) !== `svc-${basename(dir)}`) return true;
  try {
    // Before Linux 5.14 the file is missing. The machine's cookie then finds the processes.
    if (existsSync(join(path, 'cgroup.kill'))) writeFileSync(join(path, 'cgroup.kill'), '1');
    removeGroup(path);
  } catch (error) {
    // The killed processes need time to end.
    if (hasErrno(error, 'EBUSY')) return false;
    if (!hasErrno(error, 'ENOENT', 'ENODEV')) throw error;
  }
  return true;
}

/** A program may have made groups below its own. The files of a group go with it. */
function removeGroup(path: string): void {
  for (const entry of readdirSync(path, { withFileTypes: true })) if (entry.isDirectory()) removeGroup(join(path, entry.name));
  rmdirSync(path);
}

/** The namespaces' first processes, as enter.sh recorded them. */
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

/**
 * First stops all processes with the cookie until no new one appears, so that none can fork away; then kills them.
 * The kernel needs time to end them: the next call finds those, and any that escaped or that this user may not signal.
 */
async function killProcessesWith(cookie: string): Promise<readonly ProcessIdentity[]> {
  const stopped = new Map<number, ProcessIdentity>();
  for (;;) {
    const fresh = (await processesWith(cookie)).filter(({ pid, startTicks }) => stopped.get(pid)?.startTicks !== startTicks);
    if (fresh.length === 0) break;
    for (const identity of fresh) {
      stopped.set(identity.pid, identity);
      signalIfAllowed(identity, 'SIGSTOP');
    }
  }
  for (const identity of stopped.values()) signalIfAllowed(identity, 'SIGKILL');
  return [...stopped.values()];
}

/** Another user's process (through sudo) cannot be signalled. The next search finds it, and the caller reports it. */
function signalIfAllowed(identity: ProcessIdentity, signal: NodeJS.Signals): void {
  try {
    signalProcess(identity, signal);
  } catch (error) {
    if (!(error instanceof Error) || !('code' in error) || error.code !== 'EPERM') throw error;
  }
}
