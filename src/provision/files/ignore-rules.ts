import { existsSync, readFileSync } from 'node:fs';
import { dirname, join, posix, relative } from 'node:path';
import { runCommand } from '../../remote/run-command.ts';
import type { Clock } from '../../shared/clock.ts';
import { wholeEnv } from '../../shared/env.ts';
import { hasErrno } from '../../shared/errors.ts';
import { parseIgnoreFile, type IgnoreFile } from './ignore-file.ts';

/** Whether a path of a tree, relative to it and with `/`, is left out. To be asked about a folder before what is in it. */
export type IgnoreTest = (path: string, isFolder: boolean) => boolean;

/** Ignore files in the order in which they count: the first that a tree has at its top is the only kind that holds in it. */
const kinds = ['.svcignore', '.skyignore', '.gitignore'] as const;
type Kind = (typeof kinds)[number];

const gitTimeoutMs = 30_000;

/** Rules with the folder they begin in, relative to the tree; one above the tree has the way down to it instead. */
interface Level {
  readonly file: IgnoreFile;
  /** Put before a path of the tree. */
  readonly above: string;
  /** Cut from it: characters. */
  readonly below: number;
}

/**
 * The rules of a folder that is to be copied: `.svcignore` if there is one at its top, else `.skyignore`, else `.gitignore`. The first and the last
 * have git's meaning, at every depth, and of `.gitignore` files those of the repository around count as well; what git tracks is kept all the
 * same. `.git` is always left out.
 */
export async function ignoreRules(root: string, clock: Clock): Promise<IgnoreTest> {
  const kind = kinds.find((name) => existsSync(join(root, name))) ?? '.gitignore';
  const top = kind === '.gitignore' ? repositoryAround(root) : undefined;
  const levels = new Map<string, readonly Level[]>([['', topLevels(root, kind, top)]]);
  const tracked = top === undefined ? new Set<string>() : await trackedAgainstRules(root, clock);
  const trackedFolders = new Set([...tracked].flatMap(foldersOf));
  /** Left out but for what is tracked in them. */
  const hollow = new Set<string>();
  const levelsOf = (folder: string): readonly Level[] => {
    const known = levels.get(folder);
    if (known !== undefined) return known;
    const all = [...levelsOf(parentOf(folder)), ...levelIn(root, folder, kind)];
    levels.set(folder, all);
    return all;
  };
  return (path, isFolder) => {
    if (posix.basename(path) === '.git') return true;
    const parent = parentOf(path);
    const isIgnored = hollow.has(parent) || verdictOf(levelsOf(parent), path, isFolder);
    if (!isIgnored) return false;
    if (!isFolder) return !tracked.has(path);
    if (!trackedFolders.has(path)) return true;
    hollow.add(path);
    return false;
  };
}

function verdictOf(levels: readonly Level[], path: string, isFolder: boolean): boolean {
  for (const { file, above, below } of levels.toReversed()) {
    const verdict = file.verdict(above + path.slice(below), isFolder);
    if (verdict !== undefined) return verdict;
  }
  return false;
}

/** From what counts least to what counts most. */
function topLevels(root: string, kind: Kind, top: string | undefined): readonly Level[] {
  const own = levelIn(root, '', kind);
  if (top === undefined) return own;
  const levels: Level[] = [];
  for (let folder = root; folder !== top;) {
    folder = dirname(folder);
    levels.unshift(...levelAbove(root, folder, join(folder, kind)));
  }
  return [...levelAbove(root, top, join(top, '.git', 'info', 'exclude')), ...levels, ...own];
}

function levelIn(root: string, folder: string, kind: Kind): readonly Level[] {
  // SkyPilot reads the one at the top alone.
  if (kind === '.skyignore' && folder !== '') return [];
  const text = readIfThere(join(root, folder, kind));
  if (text === undefined) return [];
  return [{ file: parseIgnoreFile(text, kind === '.skyignore'), above: '', below: folder === '' ? 0 : folder.length + 1 }];
}

function levelAbove(root: string, folder: string, path: string): readonly Level[] {
  const text = readIfThere(path);
  if (text === undefined) return [];
  const way = relative(folder, root);
  return [{ file: parseIgnoreFile(text), above: way === '' ? '' : `${way}/`, below: 0 }];
}

function readIfThere(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    if (hasErrno(error, 'ENOENT', 'ENOTDIR', 'EISDIR')) return undefined;
    throw error;
  }
}

/** The folder with `.git` that a folder belongs to. */
function repositoryAround(folder: string): string | undefined {
  if (existsSync(join(folder, '.git'))) return folder;
  const parent = dirname(folder);
  return parent === folder ? undefined : repositoryAround(parent);
}

/** Files that the rules would leave out and git has all the same; none when there is no git to ask, or it will not say. */
async function trackedAgainstRules(root: string, clock: Clock): Promise<ReadonlySet<string>> {
  // Without the user's hook that may be asked for changes.
  const argv = ['git', '-c', 'core.fsmonitor=false', '-C', root, 'ls-files', '-z', '--cached', '--ignored', '--exclude-standard'];
  const { exitCode, stdout } = await runCommand(argv, { env: wholeEnv(), clock, timeoutMs: gitTimeoutMs });
  return new Set(exitCode === 0 ? stdout.split('\0').filter((path) => path !== '') : []);
}

function parentOf(path: string): string {
  const slash = path.lastIndexOf('/');
  return slash === -1 ? '' : path.slice(0, slash);
}

function foldersOf(path: string): readonly string[] {
  const parent = parentOf(path);
  return parent === '' ? [] : [...foldersOf(parent), parent];
}
