import { spawn } from 'node:child_process';
import { createReadStream } from 'node:fs';
import { stat } from 'node:fs/promises';
import { PassThrough, type Readable } from 'node:stream';
import { randomHex } from '../../shared/random-hex.ts';
import type { CopyToOptions } from '../remote.ts';
import { runCaptured } from './captured.ts';
import type { SessionMachine } from './session-machine.ts';
import { listLocalTree, parseRemoteTree, planCopy, remoteTreeFormat } from './tree-difference.ts';
import { plainWords, workError } from './work-error.ts';

/** A listing of a million files. */
const maxListingBytes = 268_435_456;

/** Folders that their owner cannot change are opened first; they get their own modes back at the end. Only GNU's find knows the format. */
const listScript = `cd -- "$1" || exit 1
find . -type d ! -perm -700 -exec chmod u+rwx {} +
find . -mindepth 1 -printf '${remoteTreeFormat}' 2> /dev/null || exit 3`;

/** Without a listing all goes and all comes. */
const clearScript = `cd -- "$1" || exit 1
find . -mindepth 1 -maxdepth 1 -exec rm -rf -- {} +`;

const removeScript = `cd -- "$1" && xargs -0 rm -rf --`;

const extractScript = `cd -- "$1" && tar -x -p -o -f -`;

/** Not every touch knows parts of a second. */
const fileScript = `umask 077
trap 'rm -f -- "$2"' EXIT
cat > "$2" && [ "$(wc -c < "$2")" -eq "$4" ] && chmod "$3" "$2" || exit 1
touch -d "@$5" "$2" 2> /dev/null || touch -d "@\${5%.*}" "$2" || exit 1
mv -f -- "$2" "$1"`;

/** For an exit code of a tar that ended by a signal; its own go up to 2. */
const killed = 3;

/** Makes a folder of the machine equal to one of ours with what every system has: its files are listed, and only what differs is sent, as a tar stream. */
export async function copyFolderByTar(
  machine: SessionMachine,
  from: string,
  to: string,
  { keepExtra, isShared, signal }: CopyToOptions,
): Promise<void> {
  const work = async (script: string, input?: Buffer | Readable): Promise<{ readonly bytes: Buffer; readonly exitCode: number }> => {
    const argv = ['sh', '-c', script, 'sh', to];
    const result = await runCaptured(machine, { argv, env: plainWords, input, signal, lane: 'copy', maxBytes: maxListingBytes });
    if (result.exitCode !== 0 && script !== listScript) throw workError(machine, `Files could not be copied to ${to}`, result.stderr);
    return result;
  };
  const local = await listLocalTree(from, signal);
  const listed = await work(listScript);
  if (listed.exitCode !== 0 && keepExtra !== true) await work(clearScript);
  const remote = listed.exitCode === 0 ? parseRemoteTree(listed.bytes) : new Map<string, never>();
  const { send, remove } = planCopy(local, remote, { keepExtra: keepExtra === true, isShared: isShared === true });
  if (remove.length > 0) await work(removeScript, nameList(remove));
  // A machine without GNU's tools may have a tar that takes no long names from POSIX headers; parts of a second, which only those have, are not compared there.
  const format = listed.exitCode === 0 ? 'posix' : 'gnu';
  const tar = spawn('tar', ['-c', '-f', '-', `--format=${format}`, '--no-recursion', '-C', from, '--null', '-T', '-'], {
    stdio: ['pipe', 'pipe', 'pipe'],
  });
  // Node throws away what a process that has ended left unread, and a session may take a while to begin.
  const archive = tar.stdout.pipe(new PassThrough());
  const ended = new Promise<number>((resolve, reject) => {
    tar.once('error', reject);
    // Killed, it leaves an archive that ends early, perhaps between two files.
    tar.once('close', (code) => resolve(code ?? killed));
  });
  // Looked at below, when the other side has ended.
  ended.catch(() => undefined);
  let said = '';
  tar.stderr.on('data', (chunk: Buffer) => (said += chunk.toString('utf8')));
  tar.stdin.on('error', () => undefined);
  tar.stdin.end(nameList(send));
  try {
    await work(extractScript, archive);
    // A file that grew or went while it was read is no error.
    if ((await ended) > 1) throw machine.lost(`was fed badly: tar said ${said.split('\n')[0] ?? ''}`);
  } finally {
    tar.kill('SIGKILL');
  }
}

/** Copies one file, in one step. */
export async function copyFileByCat(machine: SessionMachine, from: string, to: string, { signal }: CopyToOptions): Promise<void> {
  const { mode, size, mtimeMs } = await stat(from);
  const temporary = `${to}.${randomHex(12)}.new`;
  const argv = ['sh', '-c', fileScript, 'sh', to, temporary, (mode & 0o7777).toString(8), String(size), (mtimeMs / 1_000).toFixed(6)];
  const source = createReadStream(from, { end: Math.max(0, size - 1) });
  try {
    const { exitCode, stderr } = await runCaptured(machine, {
      argv,
      env: plainWords,
      input: size === 0 ? Buffer.alloc(0) : { stream: source, bytes: size },
      signal,
      lane: 'copy',
    });
    if (exitCode !== 0) throw workError(machine, `The file ${to} could not be written`, stderr);
  } finally {
    source.destroy();
  }
}

/** Names with a dot before, so that none looks like an option, each ended by a NUL. */
function nameList(paths: readonly string[]): Buffer {
  return Buffer.from(paths.map((path) => `./${path}\0`).join(''), 'latin1');
}
