import { spawn } from 'node:child_process';
import { readdir } from 'node:fs/promises';
import { hasErrno } from '../../shared/errors.ts';
import type { CopyToOptions } from '../remote.ts';
import type { SshMachine } from './ssh-machine.ts';
import { clientOptions } from './ssh-master.ts';
import { killGroup } from './ssh-process.ts';
import { sshEnvironment } from './ssh-target.ts';
import { isAboutSpace, workError } from '../session/work-error.ts';

/** Exit codes, as in rsync(1). 24: files vanished during the copy; no error. */
const success = [0, 24];
/** 126, 127: the machine's shell cannot run rsync. 2: incompatible protocol, or a login script prints text. */
const unusable = [2, 126, 127];
/** The connection broke or was silent; 255 is ssh's. */
const brokenConnection = [10, 12, 30, 35, 255];

const silenceS = 30;

const maxSaid = 65_536;

interface RsyncOptions extends CopyToOptions {
  readonly isFolder: boolean;
}

/** Returns false, with nothing copied, when one side has no usable rsync. */
export async function rsyncTo(
  machine: SshMachine,
  from: string,
  to: string,
  { isFolder, keepExtra, isShared = false, signal }: RsyncOptions,
): Promise<boolean> {
  const slash = isFolder ? '/' : '';
  const names = isFolder && isShared ? await namesIn(from) : Buffer.alloc(0);
  if (names.length === 0 && isFolder && isShared) return true;
  const { exitCode, said } = await machine.withCopyControl((control) => {
    const args = [
      // Unlike `-a`, without owners and devices.
      '-rlpt',
      // To the nanosecond: a change within the same second counts.
      '--modify-window=-1',
      '--protect-args',
      `--timeout=${silenceS}`,
      // A shared folder may be a user's home. `--force` would let a file replace a folder there. Without
      // `--keep-dirlinks`, a folder would replace a link to a folder. `--files-from` keeps the folder's own attributes.
      ...(!isShared ? ['--force'] : ['--keep-dirlinks', ...(isFolder ? ['--from0', '--files-from=-', '--recursive'] : [])]),
      ...(isFolder && keepExtra !== true ? ['--delete'] : []),
      `--rsh=${['ssh', ...clientOptions(control)].map(rshWord).join(' ')}`,
      '--',
      `${from}${slash}`,
      `machine:${to}${slash}`,
    ];
    return runRsync(args, names, signal);
  }, signal);
  if (exitCode === undefined) return false;
  if (success.includes(exitCode)) return true;
  if (isAboutSpace(said)) throw workError(machine, `Files could not be copied to ${to}`, said);
  if (unusable.includes(exitCode)) return false;
  if (brokenConnection.includes(exitCode)) {
    // The machine has no rsync: rsync here reports that as a broken connection.
    if (/rsync: (?:command )?not found|not found: rsync|Unknown command.*rsync/.test(said)) return false;
    await machine.master('c').endIfHung();
    throw machine.lost('broke while files were copied');
  }
  throw workError(machine, `Files could not be copied to ${to}`, said);
}

/** Each ended by a NUL. */
async function namesIn(folder: string): Promise<Buffer> {
  const names = await readdir(folder, { encoding: 'buffer' });
  return Buffer.concat(names.flatMap((name) => [name, Buffer.from([0])]));
}

/** `exitCode` undefined: this machine has no rsync. */
function runRsync(
  args: readonly string[],
  input: Buffer,
  signal: AbortSignal | undefined,
): Promise<{ readonly exitCode: number | undefined; readonly said: string }> {
  return new Promise((resolve, reject) => {
    signal?.throwIfAborted();
    const child = spawn('rsync', args, {
      env: { ...sshEnvironment(false), LC_ALL: 'C' },
      detached: true,
      stdio: ['pipe', 'ignore', 'pipe'],
    });
    // rsync may end before it has read all names.
    child.stdin.on('error', () => undefined);
    child.stdin.end(input);
    let said = '';
    child.stderr.on('data', (chunk: Buffer) => {
      if (said.length < maxSaid) said += chunk.toString('utf8');
    });
    const kill = (): void => killGroup(child.pid);
    signal?.addEventListener('abort', kill, { once: true });
    child.once('error', (error) => {
      signal?.removeEventListener('abort', kill);
      if (hasErrno(error, 'ENOENT')) resolve({ exitCode: undefined, said });
      else reject(error);
    });
    child.once('close', (code) => {
      signal?.removeEventListener('abort', kill);
      if (signal?.aborted === true) reject(signal.reason instanceof Error ? signal.reason : new Error(String(signal.reason)));
      else resolve({ exitCode: code ?? 255, said });
    });
  });
}

/** For `--rsh`: in single quotes, with each single quote doubled. */
function rshWord(word: string): string {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "''")}'`;
}
