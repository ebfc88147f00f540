import { createHash } from 'node:crypto';
import { chmodSync, lstatSync, mkdirSync, realpathSync, statSync, type Stats } from 'node:fs';
import { userInfo } from 'node:os';
import { dirname, join } from 'node:path';
import { readIfThere, writeFileAtomic } from './files.ts';
import { defaultHome } from '../env.ts';
import { hasErrno, messageOf, SvcError } from '../errors.ts';
import type { HomePaths } from '../paths.ts';

const othersBits = 0o077;
const othersWriteBits = 0o022;

/**
 * Creates SVC_HOME and the folder of its sockets with mode 0700, and checks it: they hold secrets, and a user who can
 * write there can run programs as this user. A folder that others could only read becomes private. Throws SVC_HOME_UNUSABLE. Several processes may call it, and repeat it.
 */
export function prepareHome(paths: HomePaths): void {
  // SVC_HOME may be a link of its user's. In /tmp any user can make a link, so the socket folder must not be one.
  preparePrivateFolder(paths.home, statSync);
  preparePrivateFolder(paths.runtimeDir, lstatSync);
  listHome(paths.home);
}

/**
 * Lists a home in the default one, so that `src/node/confine.sh` hides it from replicas of other homes. Homes in /tmp
 * need no entry: replicas have a /tmp of their own.
 */
function listHome(path: string): void {
  try {
    const home = realpathSync(path);
    const around = `${realpathSync(dirname(defaultHome()))}/`;
    if (home === `${around}.svc` || (home.startsWith('/tmp/') && !home.startsWith(around))) return;
    // With `sudo -E`, HOME is another user's. A folder of root's in it would lock that user out of their own ~/.svc.
    const owned = statSync(around).uid === process.getuid?.() ? around : userInfo().homedir;
    const list = join(owned, '.svc/homes', createHash('sha256').update(home).digest('hex').slice(0, 12));
    if (readIfThere(list) !== `${home}\n`) writeFileAtomic(list, `${home}\n`);
  } catch {
    // svc cannot write to the user's home folder.
  }
}

/** Whether there is an SVC_HOME. Says when it had to become private. Throws SVC_HOME_UNUSABLE if it cannot tell, or `prepareHome` would refuse it. */
export function checkHome(paths: HomePaths, say: (text: string) => void): boolean {
  const isThere = checkPrivateFolder(paths.home, statSync, say);
  if (isThere) checkPrivateFolder(paths.runtimeDir, lstatSync, say);
  return isThere;
}

function checkPrivateFolder(path: string, statOf: (path: string) => Stats, say: (text: string) => void): boolean {
  let stats: Stats;
  try {
    stats = statOf(path);
  } catch (error) {
    if (hasErrno(error, 'ENOENT')) return false;
    throw new SvcError('SVC_HOME_UNUSABLE', `The folder ${path} cannot be looked into: ${messageOf(error)}.`, { cause: error });
  }
  makePrivate(path, stats, say);
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
  makePrivate(path, stats, () => undefined);
}

function makePrivate(path: string, stats: Stats, say: (text: string) => void): void {
  const uid = process.getuid?.();
  if (!stats.isDirectory()) throw new SvcError('SVC_HOME_UNUSABLE', `${path} is not a folder.`);
  if (uid !== undefined && stats.uid !== uid) {
    throw new SvcError('SVC_HOME_UNUSABLE', `The folder ${path} belongs to another user (uid ${stats.uid}).`, {
      hint: 'Set SVC_HOME to a folder of your own.',
    });
  }
  if ((stats.mode & othersBits) === 0) return;
  if ((stats.mode & othersWriteBits) !== 0) {
    throw new SvcError('SVC_HOME_UNUSABLE', `The folder ${path} can be written by other users, and secrets would lie in it.`, {
      hint: `Run: chmod 700 ${path}`,
    });
  }
  // The usual result of mkdir: others could read it, and cannot have put anything into it.
  chmodSync(path, 0o700);
  say(`Other users could read the folder ${path}; it is private now.`);
}
