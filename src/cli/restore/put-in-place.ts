import {
  chmodSync,
  closeSync,
  copyFileSync,
  existsSync,
  linkSync,
  lstatSync,
  mkdirSync,
  openSync,
  readdirSync,
  readlinkSync,
  readSync,
  renameSync,
  type Stats,
} from 'node:fs';
import { dirname, join } from 'node:path';

const ownersBits = 0o700;

const pieceBytes = 1_048_576;

/**
 * Moves the unpacked files of a backup into a home on the same file system. A different file of the same name goes to
 * `aside` first, under its path; equal files and files that the backup lacks stay. The database changes last and
 * atomically. Returns whether anything was put aside. Throws Node's errors, with the home mixed; it may be repeated.
 */
export function putInPlace(from: string, home: string, aside: string): boolean {
  for (const name of readdirSync(from)) if (!name.startsWith('state.db')) place(name, { from, home, aside });
  // The former log must not be replayed into the new database.
  for (const name of ['state.db-wal', 'state.db-shm', 'state.db.seal']) if (existsSync(join(home, name))) putAside(name, home, aside);
  renameSync(join(from, 'state.db.seal'), join(home, 'state.db.seal'));
  if (existsSync(join(home, 'state.db'))) {
    mkdirSync(aside, { recursive: true, mode: ownersBits });
    copyDatabase(join(home, 'state.db'), join(aside, 'state.db'));
  }
  renameSync(join(from, 'state.db'), join(home, 'state.db'));
  return existsSync(aside);
}

function copyDatabase(from: string, to: string): void {
  try {
    linkSync(from, to);
  } catch {
    // A file system without hard links.
    copyFileSync(from, to);
  }
}

interface Folders {
  readonly from: string;
  readonly home: string;
  readonly aside: string;
}

function place(path: string, folders: Folders): void {
  const source = join(folders.from, path);
  const target = join(folders.home, path);
  const [stats, present] = [lstatSync(source), lstatSync(target, { throwIfNoEntry: false })];
  if (present !== undefined && stats.isDirectory() && present.isDirectory()) {
    for (const name of readdirSync(source)) place(join(path, name), folders);
    return;
  }
  if (present !== undefined) {
    if (isEqual(source, stats, target, present)) return;
    putAside(path, folders.home, folders.aside);
  }
  move(source, target, stats);
}

function putAside(path: string, home: string, aside: string): void {
  const target = join(aside, path);
  mkdirSync(dirname(target), { recursive: true, mode: ownersBits });
  move(join(home, path), target, lstatSync(join(home, path)));
}

/** A folder changes its parent only while its owner may write to it. */
function move(source: string, target: string, stats: Stats): void {
  const isLocked = stats.isDirectory() && (stats.mode & ownersBits) !== ownersBits;
  if (isLocked) chmodSync(source, ownersBits);
  renameSync(source, target);
  if (isLocked) chmodSync(target, stats.mode & 0o7777);
}

function isEqual(source: string, stats: Stats, target: string, present: Stats): boolean {
  if (stats.isSymbolicLink()) return present.isSymbolicLink() && readlinkSync(source) === readlinkSync(target);
  return stats.isFile() && present.isFile() && stats.size === present.size && haveSameBytes(source, target);
}

/** Compares by pieces: models have gigabytes. */
function haveSameBytes(first: string, second: string): boolean {
  const files = [first, second].map((path) => openSync(path, 'r'));
  const pieces = files.map(() => Buffer.alloc(pieceBytes));
  try {
    for (;;) {
      const [one = 0, other = 0] = files.map((file, index) => readSync(file, pieces[index] ?? Buffer.alloc(0)));
      if (one !== other || pieces[0]?.subarray(0, one).equals(pieces[1]?.subarray(0, other) ?? Buffer.alloc(0)) !== true) return false;
      if (one === 0) return true;
    }
  } finally {
    for (const file of files) closeSync(file);
  }
}
