import type { Stats } from 'node:fs';
import { lstat, readdir, readlink } from 'node:fs/promises';
import { join, posix } from 'node:path';
import { lstatIfThere } from '../../shared/system/files.ts';
import { quote } from '../../shared/text.ts';

/** `path`: relative, with `/`; empty: the tree itself. `mode`: twelve bits. `mtime`: s since the epoch, at least 0. */
export type TreeEntry =
  | { readonly kind: 'folder'; readonly path: string; readonly mode: number; readonly mtime: number }
  | { readonly kind: 'file'; readonly path: string; readonly mode: number; readonly mtime: number; readonly size: number }
  | { readonly kind: 'link'; readonly path: string; readonly target: string };

/** Folders before their content, names in byte order. */
interface ScannedTree {
  readonly entries: readonly TreeEntry[];
  /** Clauses about entries that cannot be copied, such as `'run/app.sock' is a socket`. */
  readonly skipped: readonly string[];
}

/** Per folder: enough to keep the disk busy. */
const statsAtOnce = 32;

/** Lists a folder or a single file. Does not follow links. */
export async function scanTree(root: string, signal?: AbortSignal): Promise<ScannedTree> {
  const entries: TreeEntry[] = [];
  const skipped: string[] = [];
  const add = async (path: string, stats: Stats): Promise<void> => {
    const mode = stats.mode & 0o7777;
    const mtime = Math.max(0, Math.floor(stats.mtimeMs / 1_000));
    if (stats.isSymbolicLink()) entries.push({ kind: 'link', path, target: await readlink(join(root, path)) });
    else if (stats.isFile()) entries.push({ kind: 'file', path, mode, mtime, size: stats.size });
    else if (stats.isDirectory()) {
      entries.push({ kind: 'folder', path, mode, mtime });
      await walk(path);
    } else skipped.push(`${quote(path)} is ${kindOf(stats)}`);
  };
  const walk = async (folder: string): Promise<void> => {
    signal?.throwIfAborted();
    const names = (await readdir(join(root, folder))).toSorted((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b)));
    for (let first = 0; first < names.length; first += statsAtOnce) {
      const paths = names.slice(first, first + statsAtOnce).map((name) => posix.join(folder, name));
      const all = await Promise.all(paths.map(async (path) => [path, await lstatIfThere(join(root, path))] as const));
      for (const [path, stats] of all) {
        if (stats !== undefined) await add(path, stats);
        else if (path.includes('\uFFFD')) skipped.push(`${quote(path)} has a name that is not UTF-8`);
      }
    }
  };
  await add('', await lstat(root));
  return { entries, skipped };
}

/** Names the kind of an entry that is neither file, folder nor link, with an article. */
export function kindOf(stats: Stats): string {
  if (stats.isSocket()) return 'a socket';
  if (stats.isFIFO()) return 'a pipe';
  return 'a device';
}
