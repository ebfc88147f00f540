import { dirname, join, resolve } from 'node:path';

/** Base of a file's relative paths. */
export interface PathBase {
  /** Absolute. */
  readonly folder: string;
  /** What `~` expands to, absolute. */
  readonly home: string;
}

/** Paths in a file are relative to its folder; those in text from standard input, to the working directory. */
export function pathBase(file: string, home: string): PathBase {
  return { folder: file === '-' ? resolve('.') : dirname(resolve(file)), home };
}

/** A path as the user wrote it, made absolute. `~` is the home folder. */
export function expandPath(path: string, base: PathBase): string {
  if (path === '~') return base.home;
  if (path.startsWith('~/')) return join(base.home, path.slice(2));
  return resolve(base.folder, path);
}
