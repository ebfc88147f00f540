import { spawn } from 'node:child_process';
import { readdir } from 'node:fs/promises';
import { hasErrno } from '../../shared/errors.ts';
import type { CopyToOptions } from '../remote.ts';
import type { SshMachine } from './ssh-machine.ts';
import { clientOptions } from './ssh-master.ts';
import { killGroup } from './ssh-process.ts';
import { sshEnvironment } from './ssh-target.ts';
import { isAboutSpace, workError } from '../session/work-error.ts';

/** Exit codes of rsync(1). Files that vanish while they are copied are no error. */
const success = [0, 24];
/** Shell of the machine: no such command; rsync: incompatible protocol, as when a login script prints something. */
const unusable = [2, 126, 127];
const brokenConnection = [10, 12, 30, 35, 255];

/** Silence of so many seconds is the end. */
const silenceS = 30;

/** Most of what rsync says that is kept. */
const maxSaid = 65_536;

/** How one copy is to be made. */
export interface RsyncOptions extends CopyToOptions {
  readonly isFolder: boolean;
}

/** Copies by rsync; false when one side does not have it, and then nothing was copied. */
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
      // Neither owners nor devices: they are not the copy's.
      '-rlpt',
      // Times are compared to the nanosecond: a change within the same second counts.
      '--modify-window=-1',
      '--protect-args',
      `--timeout=${silenceS}`,
      // Without the latter two a folder there gives way to a file, and a link to a folder to a folder. The folder itself, which is then not among
      // the names, stays as it is: it may be somebody's home.
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
    // Also what the machine's shell says of a command that it does not have.
    if (/rsync: (?:command )?not found|not found: rsync|Unknown command.*rsync/.test(said)) return false;
    await machine.master('c').endIfHung();
    throw machine.lost('broke while files were copied');
  }
  throw workError(machine, `Files could not be copied to ${to}`, said);
}

/** What is directly in a folder, each name ended by a NUL. */
async function namesIn(folder: string): Promise<Buffer> {
  const names = await readdir(folder, { encoding: 'buffer' });
  return Buffer.concat(names.flatMap((name) => [name, Buffer.from([0])]));
}

/** The exit code is undefined when there is no rsync here. */
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
    // It may end before it has read them.
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

/** As rsync parts its `--rsh`: words in single quotes, in which a quote is written twice. */
function rshWord(word: string): string {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "''")}'`;
}
