import { chmodSync, linkSync, mkdirSync, rmSync, statSync, type BigIntStats } from 'node:fs';
import { connect, type Server } from 'node:net';
import { dirname } from 'node:path';
import { isSameFile, removeFound } from '../shared/system/claim-socket.ts';
import { hasErrno, SvcError } from '../shared/errors.ts';
import { randomHex } from '../shared/hex.ts';

interface OwnedSocket {
  /** Removes the file, unless another server has replaced it. */
  remove(): void;
}

/**
 * Makes a server listen on a Unix socket with mode 0600, in place of a dead process's file. SVC_CONTROLLER_RUNNING when
 * a server answers there, even if several processes try at once. The server first listens under a temporary name. A
 * hard link gives it the real name, unless that is taken: that file always belongs to a listening or a dead server.
 */
export async function listenOnUnixSocket(server: Server, path: string): Promise<OwnedSocket> {
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  const own = besides(path);
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(own, () => {
      server.off('error', reject);
      resolve();
    });
  });
  let made: BigIntStats;
  try {
    chmodSync(own, 0o600);
    made = statSync(own, { bigint: true });
    await claim(own, path);
  } catch (error) {
    server.close();
    throw error;
  } finally {
    rmSync(own, { force: true });
  }
  return {
    remove() {
      if (isSameFile(statOrNothing(path), made)) rmSync(path, { force: true });
    },
  };
}

async function claim(own: string, path: string): Promise<void> {
  for (;;) {
    try {
      linkSync(own, path);
      return;
    } catch (error) {
      if (!hasErrno(error, 'EEXIST')) throw error;
    }
    const seen = statOrNothing(path);
    if (seen === undefined) continue;
    if (!seen.isSocket()) throw new SvcError('SVC_HOME_UNUSABLE', `${path} is in the way: it is not a socket.`, { hint: 'Move it away.' });
    if (await isAnswered(path)) throw runningAlready(path);
    // Another server has just created its own socket there.
    if (!removeFound(path, seen)) throw runningAlready(path);
  }
}

function isAnswered(path: string): Promise<boolean> {
  return new Promise((resolve, reject) => {
    const socket = connect(path);
    socket.on('connect', () => {
      socket.destroy();
      resolve(true);
    });
    socket.on('error', (error) => {
      if (hasErrno(error, 'ECONNREFUSED', 'ENOENT')) resolve(false);
      // The server's connection queue is full: it is busy, but alive.
      else if (hasErrno(error, 'EAGAIN')) resolve(true);
      else reject(error);
    });
  });
}

function statOrNothing(path: string): BigIntStats | undefined {
  return statSync(path, { bigint: true, throwIfNoEntry: false });
}

function besides(path: string): string {
  return `${path}.${randomHex(6)}`;
}

function runningAlready(path: string): SvcError {
  return new SvcError('SVC_CONTROLLER_RUNNING', `A controller answers on ${path} already.`);
}
