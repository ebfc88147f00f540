import { chmodSync, lstatSync, mkdirSync, readdirSync, readFileSync, readlinkSync, symlinkSync, utimesSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fingerprint } from '../../src/shared/hex.ts';

/** Content of a test folder, by path: a file's text, a link with its target, a folder. */
export type TreeSpec = Readonly<Record<string, string | { readonly link: string } | { readonly mode: number; readonly text?: string }>>;

/** Writes it, folders with modes last so that they can be filled. */
export function writeTree(root: string, spec: TreeSpec): void {
  mkdirSync(root, { recursive: true });
  const folders: (readonly [path: string, mode: number])[] = [];
  for (const [name, what] of Object.entries(spec)) {
    const path = join(root, name);
    mkdirSync(dirname(path), { recursive: true });
    if (typeof what === 'string') writeFileSync(path, what);
    else if ('link' in what) symlinkSync(what.link, path);
    else if (what.text === undefined) {
      mkdirSync(path, { recursive: true });
      folders.push([path, what.mode]);
    } else {
      writeFileSync(path, what.text);
      chmodSync(path, what.mode);
    }
  }
  for (const [path, mode] of folders.toReversed()) chmodSync(path, mode);
}

/** Sets the time of a file, seconds since the epoch. */
export function setTime(path: string, seconds: number): void {
  utimesSync(path, seconds, seconds);
}

/** Abbreviates long texts to their distinguishing parts, so that a failed comparison is readable. */
function contentOf(text: string): string {
  return text.length <= 1_000 ? text : `${text.length} bytes ${fingerprint(text)}`;
}

/** Returns everything below a folder as plain data: kind, mode, text or target; the folder itself is the empty path. */
export function readTree(root: string): Readonly<Record<string, string>> {
  const found: Record<string, string> = {};
  const add = (path: string): void => {
    const at = join(root, path);
    const stats = lstatSync(at);
    const mode = (stats.mode & 0o7777).toString(8);
    if (stats.isSymbolicLink()) found[path] = `link ${readlinkSync(at)}`;
    else if (stats.isDirectory()) {
      found[path] = `folder ${mode}`;
      for (const name of readdirSync(at)) add(path === '' ? name : `${path}/${name}`);
    } else if (stats.isFile()) found[path] = `file ${mode} ${Math.floor(stats.mtimeMs / 1_000)} ${contentOf(readFileSync(at, 'latin1'))}`;
    else found[path] = 'other';
  };
  add('');
  return found;
}
