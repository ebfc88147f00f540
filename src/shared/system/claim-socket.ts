import { linkSync, renameSync, rmSync, statSync, type BigIntStats } from 'node:fs';
import { connect } from 'node:net';
import { hasErrno } from '../errors.ts';
import { randomHex } from '../hex.ts';

/**
 * Publishes a listening socket under its clients' name: a hard link, which only one process can create. Takes over a
 * name without a listener; false when another process listens there.
 */
export async function claimSocket(own: string, name: string): Promise<boolean> {
  for (;;) {
    try {
      linkSync(own, name);
      return true;
    } catch (error) {
      if (!hasErrno(error, 'EEXIST')) throw error;
    }
    const found = statSync(name, { bigint: true, throwIfNoEntry: false });
    if (found === undefined) continue;
    if (await isListenedOn(name)) return false;
    removeFound(name, found);
  }
}

/**
 * Removes the file that was found at a name. A file that another process has created there since is restored, unless
 * there is a newer one by then; the result is then false.
 */
export function removeFound(name: string, found: BigIntStats): boolean {
  const aside = `${name}.${randomHex(6)}`;
  try {
    renameSync(name, aside);
  } catch (error) {
    if (hasErrno(error, 'ENOENT')) return true;
    throw error;
  }
  try {
    if (isSameFile(statSync(aside, { bigint: true }), found)) return true;
    linkSync(aside, name);
  } catch (error) {
    if (!hasErrno(error, 'EEXIST')) throw error;
  } finally {
    rmSync(aside, { force: true });
  }
  return false;
}

/** Whether two stats are of the same file, whatever its name. A removed file's inode is reused for the next file. */
export function isSameFile(one: BigIntStats | undefined, other: BigIntStats): boolean {
  return one?.ino === other.ino && one.mtimeNs === other.mtimeNs;
}

/** Whether a process listens on a socket file. */
export function isListenedOn(path: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ path });
    socket.once('connect', () => {
      socket.destroy();
      resolve(true);
    });
    // The listener's queue is full, or this process cannot open more files. Neither shows that no process listens.
    socket.once('error', (error) => resolve(hasErrno(error, 'EAGAIN', 'EMFILE', 'ENFILE', 'ENOMEM')));
  });
}
