import type { Stats } from 'node:fs';
import { lstat, readdir, readlink } from 'node:fs/promises';

/** One entry of a tree. Of a link `content` is where it leads to; of a file its size and time of change. */
export interface TreeEntry {
  readonly kind: 'd' | 'f' | 'l';
  readonly mode: number;
  readonly size: number;
  readonly mtimeMs: number;
  readonly content: string;
}

/** Paths are relative, with one character for each byte (latin1), as a name need not be text. */
export type Tree = ReadonlyMap<string, TreeEntry>;

/** For find's `-printf`: six fields, each ended by a NUL. */
export const remoteTreeFormat = '%P\\0%y\\0%m\\0%s\\0%T@\\0%l\\0';

const fieldCount = 6;

/** All folders, files and links below a folder; the folder itself is the empty path. Whatever else is there is left out. */
export async function listLocalTree(dir: string, signal?: AbortSignal): Promise<Tree> {
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

/** What `find` said on the machine with `remoteTreeFormat`. Pure. */
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

/** What to send and what to remove first, so that the machine's tree becomes ours. Pure. Folders are always sent: that costs nothing but their modes. */
export function planCopy(
  local: Tree,
  remote: ReadonlyMap<string, TreeEntry | undefined>,
  { keepExtra, isShared }: { readonly keepExtra: boolean; readonly isShared: boolean },
): { readonly send: readonly string[]; readonly remove: readonly string[] } {
  // Where others have something the folder itself stays as it is, and a link may lead to where the folder really is.
  const isTheirs = (path: string, { kind }: TreeEntry): boolean =>
    isShared && kind === 'd' && (path === '' || remote.get(path)?.kind === 'l');
  const send = [...local].filter(([path, entry]) => !isSame(entry, remote.get(path)) && !isTheirs(path, entry)).map(([path]) => path);
  const remove = [...remote]
    .filter(([path, entry]) => {
      const wanted = local.get(path);
      if (wanted === undefined) return !keepExtra;
      return wanted.kind !== entry?.kind && !(isShared && (entry?.kind === 'd' || isTheirs(path, wanted)));
    })
    .map(([path]) => path);
  return { send, remove };
}

/** As rsync judges: the same size and time of change. Some file systems and tools know no more than microseconds. */
function isSame(wanted: TreeEntry, there: TreeEntry | undefined): boolean {
  if (wanted.kind === 'd' || there === undefined || wanted.kind !== there.kind) return false;
  if (wanted.kind === 'l') return wanted.content === there.content;
  return wanted.mode === there.mode && wanted.size === there.size && Math.abs(wanted.mtimeMs - there.mtimeMs) < 1;
}

function kindOf(stats: Stats): TreeEntry['kind'] | undefined {
  if (stats.isDirectory()) return 'd';
  if (stats.isFile()) return 'f';
  return stats.isSymbolicLink() ? 'l' : undefined;
}
