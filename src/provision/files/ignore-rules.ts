import { existsSync, readFileSync } from 'node:fs';
import { dirname, join, posix, relative } from 'node:path';
import ignore from 'ignore';
import { runCommand } from '../../remote/run-command.ts';
import type { Clock } from '../../shared/clock.ts';
import { wholeEnv } from '../../shared/env.ts';
import { hasErrno } from '../../shared/errors.ts';

/** Whether a path, relative to the tree and with `/`, is ignored. Callers must ask for a folder before its content. */
type IgnoreTest = (path: string, isFolder: boolean) => boolean;

/** By precedence. Only the first kind that exists at the tree's top applies to the tree. */
const kinds = ['.svcignore', '.skyignore', '.gitignore'] as const;
type Kind = (typeof kinds)[number];

const gitTimeoutMs = 30_000;

/** Rules of one folder. For a folder above the tree, `above` is the path from there to the tree. */
interface Level {
  readonly file: IgnoreFile;
  readonly above: string;
  readonly below: number;
}

/**
 * The rules for a folder to copy: of `.svcignore` if it exists at the top, else `.skyignore`, else `.gitignore`.
 * `.svcignore` and `.gitignore` have git's meaning at every depth. For `.gitignore`, the files of the surrounding
 * repository apply too, and tracked files are always included. `.git` is always ignored.
 */
export async function ignoreRules(root: string, clock: Clock): Promise<IgnoreTest> {
  const kind = kinds.find((name) => existsSync(join(root, name))) ?? '.gitignore';
  const top = kind === '.gitignore' ? repositoryAround(root) : undefined;
  const levels = new Map<string, readonly Level[]>([['', topLevels(root, kind, top)]]);
  const tracked = top === undefined ? new Set<string>() : await trackedAgainstRules(root, clock);
  const trackedFolders = new Set([...tracked].flatMap(foldersOf));
  /** Ignored folders of which only tracked files are included. */
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
  const within = ({ above, below }: Level): string => above + path.slice(below);
  for (const [index, level] of [...levels.entries()].toReversed()) {
    const verdict = level.file.verdict(within(level), isFolder);
    if (verdict === undefined) continue;
    if (!verdict && isFolder) for (const overruled of levels.slice(0, index)) overruled.file.keep(within(overruled));
    return verdict;
  }
  return false;
}

/** By rising precedence. */
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
  // SkyPilot reads only the file at the top.
  if (kind === '.skyignore' && folder !== '') return [];
  const text = readIfExists(join(root, folder, kind));
  if (text === undefined) return [];
  return [{ file: parseIgnoreFile(text, kind === '.skyignore'), above: '', below: folder === '' ? 0 : folder.length + 1 }];
}

function levelAbove(root: string, folder: string, file: string): readonly Level[] {
  const text = readIfExists(file);
  if (text === undefined) return [];
  const path = relative(folder, root);
  const rules = parseIgnoreFile(text);
  // The user asks for this folder: rules above it must not exclude it.
  for (const kept of path === '' ? [] : [...foldersOf(path), path]) rules.keep(kept);
  return [{ file: rules, above: path === '' ? '' : `${path}/`, below: 0 }];
}

function readIfExists(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    if (hasErrno(error, 'ENOENT', 'ENOTDIR', 'EISDIR')) return undefined;
    throw error;
  }
}

/** The closest folder with `.git`, upwards. */
function repositoryAround(folder: string): string | undefined {
  if (existsSync(join(folder, '.git'))) return folder;
  const parent = dirname(folder);
  return parent === folder ? undefined : repositoryAround(parent);
}

/** None when git is missing or fails. */
async function trackedAgainstRules(root: string, clock: Clock): Promise<ReadonlySet<string>> {
  // `core.fsmonitor=false`: git must not run the user's fsmonitor hook.
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

interface IgnoreFile {
  /** Whether the last matching rule ignores the path or a folder above it; undefined when no rule matches. */
  verdict(path: string, isFolder: boolean): boolean | undefined;
  /** A file of higher precedence includes this folder. These rules still apply to each path in it. */
  keep(folder: string): void;
}

/**
 * By the rules of git's documentation, with patterns relative to the file's folder. `anyDepth`, as for SkyPilot's
 * `.skyignore`: patterns with a slash in the middle match at any depth, and `!` has no meaning.
 */
function parseIgnoreFile(text: string, anyDepth = false): IgnoreFile {
  const withoutMark = text.replace(/^\uFEFF/, '');
  const patterns = anyDepth ? withoutMark.replaceAll(/^!/gm, '\\!').replaceAll(/^(?=[^/#\n].*\/ *[^ \r\n])/gm, '**/') : withoutMark;
  const rules = ignore({ ignoreCase: false }).add(toBytes(patterns));
  const verdict = (path: string, isFolder: boolean): boolean | undefined => {
    const { ignored, unignored } = rules.test(toBytes(isFolder ? `${path}/` : path));
    return ignored || unignored ? ignored : undefined;
  };
  return {
    verdict,
    keep(folder) {
      if (verdict(folder, true) === true) rules.add({ pattern: `!/${toBytes(folder).replaceAll(/[*?[\\ ]/g, '\\$&')}/` });
    },
  };
}

/** UTF-8 bytes, one character per byte: git's `?` matches one byte, not one letter. */
function toBytes(text: string): string {
  return Buffer.from(text, 'utf8').toString('latin1');
}
