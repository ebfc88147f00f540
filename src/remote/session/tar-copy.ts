import { spawn } from 'node:child_process';
import { type Stats, createReadStream } from 'node:fs';
import { lstat, readdir, readlink, stat } from 'node:fs/promises';
import { PassThrough, type Readable } from 'node:stream';
import { randomHex } from '../../shared/hex.ts';
import type { CopyToOptions } from '../remote.ts';
import { runCaptured } from './captured.ts';
import type { SessionMachine } from './session-machine.ts';
import { plainWords, workError } from './work-error.ts';

/** One entry of a tree. `content` is a link's target, or a file's size and time of change. */
export interface TreeEntry {
  readonly kind: 'd' | 'f' | 'l';
  readonly mode: number;
  readonly size: number;
  readonly mtimeMs: number;
  readonly content: string;
}

/** Paths are relative, with one character per byte (latin1): a name need not be valid text. */
type Tree = ReadonlyMap<string, TreeEntry>;

/** For `find -printf`: six fields, each ended by a NUL. */
const remoteTreeFormat = '%P\\0%y\\0%m\\0%s\\0%T@\\0%l\\0';

const fieldCount = 6;

/** All folders, files and links below a folder, which itself has the empty path. Other entries are left out. */
async function listLocalTree(dir: string, signal?: AbortSignal): Promise<Tree> {
  const tree = new Map<string, TreeEntry>();
  const bytes = (path: string): Buffer => Buffer.from(`${Buffer.from(dir).toString('latin1')}/${path}`, 'latin1');
  const visit = async (path: string): Promise<void> => {
    signal?.throwIfAborted();
    const stats = await lstat(bytes(path));
    const kind = kindOf(stats);
    if (kind === undefined) return;
    const content = kind === 'l' ? await readlink(bytes(path), 'latin1') : '';
    tree.set(path, { kind, mode: stats.mode & 0o7777, size: stats.size, mtimeMs: stats.mtimeMs, content });
    if (kind !== 'd') return;
    for (const name of await readdir(bytes(path), { encoding: 'latin1' })) await visit(path === '' ? name : `${path}/${name}`);
  };
  await visit('');
  return tree;
}

/** Parses the machine's listing in `remoteTreeFormat`. Pure. */
export function parseRemoteTree(listing: Buffer): ReadonlyMap<string, TreeEntry | undefined> {
  const fields = listing.toString('latin1').split('\0');
  const tree = new Map<string, TreeEntry | undefined>();
  for (let at = 0; at + fieldCount <= fields.length; at += fieldCount) {
    const [path = '', kind, mode = '0', size, seconds, content = ''] = fields.slice(at, at + fieldCount);
    const isKnown = kind === 'd' || kind === 'f' || kind === 'l';
    const entry: TreeEntry | undefined = isKnown
      ? { kind, mode: Number.parseInt(mode, 8), size: Number(size), mtimeMs: Number(seconds) * 1_000, content }
      : undefined;
    tree.set(path, entry);
  }
  return tree;
}

/** What to remove first and what to send, to make the trees equal. Folders are always sent, for their modes. Pure. */
export function planCopy(
  local: Tree,
  remote: ReadonlyMap<string, TreeEntry | undefined>,
  { keepExtra, isShared }: { readonly keepExtra: boolean; readonly isShared: boolean },
): { readonly send: readonly string[]; readonly remove: readonly string[] } {
  // In a shared target the root folder stays as it is, and a link may stand for a folder.
  const isTheirs = (path: string, { kind }: TreeEntry): boolean =>
    isShared && kind === 'd' && (path === '' || remote.get(path)?.kind === 'l');
  const send = [...local].filter(([path, entry]) => !isSame(entry, remote.get(path)) && !isTheirs(path, entry)).map(([path]) => path);
  const remove = [...remote]
    .filter(([path, entry]) => {
      const localEntry = local.get(path);
      if (localEntry === undefined) return !keepExtra;
      return localEntry.kind !== entry?.kind && !(isShared && (entry?.kind === 'd' || isTheirs(path, localEntry)));
    })
    .map(([path]) => path);
  return { send, remove };
}

/** As rsync: equal size and time of change. Some file systems and tools only support microseconds. */
function isSame(localEntry: TreeEntry, remoteEntry: TreeEntry | undefined): boolean {
  if (localEntry.kind === 'd' || remoteEntry === undefined || localEntry.kind !== remoteEntry.kind) return false;
  if (localEntry.kind === 'l') return localEntry.content === remoteEntry.content;
  return (
    localEntry.mode === remoteEntry.mode && localEntry.size === remoteEntry.size && Math.abs(localEntry.mtimeMs - remoteEntry.mtimeMs) < 1
  );
}

function kindOf(stats: Stats): TreeEntry['kind'] | undefined {
  if (stats.isDirectory()) return 'd';
  if (stats.isFile()) return 'f';
  return stats.isSymbolicLink() ? 'l' : undefined;
}

/** Enough for a listing of a million files. */
const maxListingBytes = 268_435_456;

/** Makes read-only folders writable; they get their modes back at the end. Only GNU find supports the format. */
const listScript = `cd -- "$1" || exit 1
find . -type d ! -perm -700 -exec chmod u+rwx {} +
find . -mindepth 1 -printf '${remoteTreeFormat}' 2> /dev/null || exit 3`;

/** Used without a listing: everything is removed, then sent. */
const clearScript = `cd -- "$1" || exit 1
find . -mindepth 1 -maxdepth 1 -exec rm -rf -- {} +`;

const removeScript = `cd -- "$1" && xargs -0 rm -rf --`;

const extractScript = `cd -- "$1" && tar -x -p -o -f -`;

/** Not every touch supports fractions of a second. */
const fileScript = `umask 077
trap 'rm -f -- "$2"' EXIT
cat > "$2" && [ "$(wc -c < "$2")" -eq "$4" ] && chmod "$3" "$2" || exit 1
touch -d "@$5" "$2" 2> /dev/null || touch -d "@\${5%.*}" "$2" || exit 1
mv -f -- "$2" "$1"`;

/** Exit code for a tar that a signal killed; tar's own codes go up to 2. */
const killed = 3;

/** Makes a machine's folder equal to a local one with common tools: lists its files, sends the differences as tar. */
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
  // Without GNU tools, tar may not read long names in POSIX headers. Only those hold fractions of a second, which are
  // not compared then.
  const format = listed.exitCode === 0 ? 'posix' : 'gnu';
  const tar = spawn('tar', ['-c', '-f', '-', `--format=${format}`, '--no-recursion', '-C', from, '--null', '-T', '-'], {
    stdio: ['pipe', 'pipe', 'pipe'],
  });
  // Node discards an ended process's unread output, and a session may start late. The PassThrough keeps the output.
  const archive = tar.stdout.pipe(new PassThrough());
  const ended = new Promise<number>((resolve, reject) => {
    tar.once('error', reject);
    // A killed tar leaves a short archive that may end between two files.
    tar.once('close', (code) => resolve(code ?? killed));
  });
  // Awaited only after the remote side has ended; until then a rejection must not count as unhandled.
  ended.catch(() => undefined);
  let said = '';
  tar.stderr.on('data', (chunk: Buffer) => (said += chunk.toString('utf8')));
  tar.stdin.on('error', () => undefined);
  tar.stdin.end(nameList(send));
  try {
    await work(extractScript, archive);
    // Code 1: a file changed or vanished while it was read.
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

/** Names end with a NUL and start with `./`, so that none looks like an option. */
function nameList(paths: readonly string[]): Buffer {
  return Buffer.from(paths.map((path) => `./${path}\0`).join(''), 'latin1');
}
