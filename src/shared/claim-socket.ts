import { linkSync, rmSync } from 'node:fs';
import { connect } from 'node:net';
import { hasErrno } from './errors.ts';

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
    if (await isListenedOn(name)) return false;
    rmSync(name, { force: true });
  }
}

/** Whether somebody listens on a socket file. */
export function isListenedOn(path: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ path });
    socket.once('connect', () => {
      socket.destroy();
      resolve(true);
    });
    socket.once('error', () => resolve(false));
  });
}
