import { lstatSync, mkdirSync, statSync, type Stats } from 'node:fs';
import { hasErrno, messageOf, SvcError } from './errors.ts';
import type { HomePaths } from './paths.ts';

/** Permission bits of everybody but the owner. */
const othersBits = 0o077;

/**
 * Makes SVC_HOME and the folder of its sockets, private to this user (mode 0700), and checks that they are: the values of secrets lie
 * there, and whoever can write there can run programs as this user. Throws SVC_HOME_UNUSABLE. Fine to call again and from several processes.
 */
export function prepareHome(paths: HomePaths): void {
  // SVC_HOME may be a link that its user made. One in /tmp could be anybody's, so that the socket folder may not be.
  preparePrivateFolder(paths.home, statSync);
  preparePrivateFolder(paths.runtimeDir, lstatSync);
}

/**
 * Checks the same without making anything, for commands that only look: whether there is an SVC_HOME. Throws SVC_HOME_UNUSABLE when there
 * is one that `prepareHome` would refuse, or when it cannot even be looked for.
 */
export function checkHome(paths: HomePaths): boolean {
  const isThere = checkPrivateFolder(paths.home, statSync);
  if (isThere) checkPrivateFolder(paths.runtimeDir, lstatSync);
  return isThere;
}

function checkPrivateFolder(path: string, statOf: (path: string) => Stats): boolean {
  let stats: Stats;
  try {
    stats = statOf(path);
  } catch (error) {
    if (hasErrno(error, 'ENOENT')) return false;
    throw new SvcError('SVC_HOME_UNUSABLE', `The folder ${path} cannot be looked into: ${messageOf(error)}.`, { cause: error });
  }
  refuseUnlessPrivate(path, stats);
  return true;
}

function preparePrivateFolder(path: string, statOf: (path: string) => Stats): void {
  let stats: Stats;
  try {
    mkdirSync(path, { recursive: true, mode: 0o700 });
    stats = statOf(path);
  } catch (error) {
    throw new SvcError('SVC_HOME_UNUSABLE', `The folder ${path} cannot be made: ${messageOf(error)}.`, { cause: error });
  }
  refuseUnlessPrivate(path, stats);
}

function refuseUnlessPrivate(path: string, stats: Stats): void {
  const uid = process.getuid?.();
  if (!stats.isDirectory()) throw new SvcError('SVC_HOME_UNUSABLE', `${path} is not a folder.`);
  if (uid !== undefined && stats.uid !== uid) {
    throw new SvcError('SVC_HOME_UNUSABLE', `The folder ${path} belongs to another user (uid ${stats.uid}).`, {
      hint: 'Set SVC_HOME to a folder of your own.',
    });
  }
  if ((stats.mode & othersBits) !== 0) {
    throw new SvcError('SVC_HOME_UNUSABLE', `The folder ${path} is open to other users, and secrets would lie in it.`, {
      hint: `Run: chmod 700 ${path}`,
    });
  }
}
