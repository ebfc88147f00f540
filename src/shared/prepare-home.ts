import { lstatSync, mkdirSync, statSync, type Stats } from 'node:fs';
import { messageOf, SvcError } from './errors.ts';
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

function preparePrivateFolder(path: string, statOf: (path: string) => Stats): void {
  let stats: Stats;
  try {
    mkdirSync(path, { recursive: true, mode: 0o700 });
    stats = statOf(path);
  } catch (error) {
    throw new SvcError('SVC_HOME_UNUSABLE', `The folder ${path} cannot be made: ${messageOf(error)}.`, { cause: error });
  }
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
