import { linkSync, renameSync, rmSync, statSync, type BigIntStats } from 'node:fs';
import { connect } from 'node:net';
import { hasErrno } from './errors.ts';
import { randomHex } from './random-hex.ts';

/**
 * Gives a socket that is listened on the name by which others look for it: a hard link, which one process alone can make. False when somebody listens there
 * already; a name on which nobody does is taken over.
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
 * Removes the file that was found at a name, and no other one: what somebody else has put there since is put back, unless there is a newer one by then. Tells
 * whether nobody had.
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

/** Whether two looks saw one file, whatever it was called. Its number alone does not tell: that of a file that was removed is given to the next one. */
export function isSameFile(one: BigIntStats | undefined, other: BigIntStats): boolean {
  return one?.ino === other.ino && one.mtimeNs === other.mtimeNs;
}

/** Whether somebody listens on a socket file. */
export function isListenedOn(path: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ path });
    socket.once('connect', () => {
      socket.destroy();
      resolve(true);
    });
    // Too many wait there for an answer, or this process can open nothing more: that does not say that nobody is there.
    socket.once('error', (error) => resolve(hasErrno(error, 'EAGAIN', 'EMFILE', 'ENFILE', 'ENOMEM')));
  });
}
