import { existsSync } from 'node:fs';
import { mkdir, realpath, rm } from 'node:fs/promises';
import { join, relative } from 'node:path';
import type { Task } from '../../domain/task.ts';
import type { LocalSource } from './delivery.ts';
import { sha256OfFile } from './file-digest.ts';
import { ignoreRules } from './ignore-rules.ts';
import { kindOf, scanTree, type TreeEntry } from './scan.ts';
import { copyTree } from '../../remote/copy-tree.ts';
import { systemClock } from '../../shared/clock.ts';
import { hasErrno, messageOf, SvcError } from '../../shared/errors.ts';
import { quote } from '../../shared/text.ts';

interface Snapshot {
  /** A sentence about entries that could not be copied, such as sockets; ignored ones do not count. */
  readonly note: string | undefined;
}

const namedAtMost = 5;

/**
 * Copies a task's working directory and file mounts to svc's folder, so that later replicas are identical even if the
 * originals change. Leaves out `.git`, entries in ignore files, and `home` (SVC_HOME). Keeps links as they are, also to
 * the outside. A failure removes the partial copy.
 */
export async function takeSnapshot(task: Task, dir: string, home: string): Promise<Snapshot> {
  const skipped: string[] = [];
  try {
    await mkdir(dir, { recursive: true, mode: 0o700 });
    if (task.workdir?.kind === 'path') await copy(task.workdir.path, join(dir, 'workdir'), home, skipped);
    for (const [index, mount] of task.fileMounts.entries()) {
      if (mount.source.kind === 'path') await copy(mount.source.path, join(dir, 'mounts', String(index)), home, skipped);
    }
    return { note: noteOf(skipped) };
  } catch (error) {
    await rm(dir, { recursive: true, force: true });
    if (hasErrno(error, 'ENOSPC', 'EDQUOT')) {
      throw new SvcError('SVC_NO_SPACE', `There is no space left to copy the working directory to ${dir}.`, { cause: error });
    }
    if (hasErrno(error, 'EACCES', 'EPERM'))
      throw new SvcError('SVC_FILE_UNREADABLE', `The working directory cannot be copied: ${messageOf(error)}`, { cause: error });
    throw error;
  }
}

/**
 * Whether two copies of `takeSnapshot` have the same content. Times do not count: a checkout changes them. Nor does
 * `taskFile`, the path of the task's own file in the working directory: it says what to run and is no part of it.
 */
export async function isSameSnapshot(a: string, b: string, taskFile: string | undefined): Promise<boolean> {
  if (!existsSync(a) || !existsSync(b)) return false;
  const ignored = taskFile === undefined ? undefined : join('workdir', taskFile);
  const entriesOf = async (root: string): Promise<readonly TreeEntry[]> => {
    const { entries } = await scanTree(root);
    return entries.filter(({ path }) => path !== ignored);
  };
  const [left, right] = [await entriesOf(a), await entriesOf(b)];
  if (withoutTimes(left) !== withoutTimes(right)) return false;
  for (const { kind, path } of left)
    if (kind === 'file' && (await sha256OfFile(join(a, path))) !== (await sha256OfFile(join(b, path)))) return false;
  return true;
}

const withoutTimes = (entries: readonly TreeEntry[]): string => JSON.stringify(entries.map((entry) => ({ ...entry, mtime: 0 })));

/** Where a task's files are copied. `name` is unique among all copies of their owner. */
export interface SnapshotLocation {
  readonly dir: string;
  readonly name: string;
}

/** `target`: on the machine, relative to the working directory, below `~/`, or absolute. */
interface MountedFiles {
  /** A copy on this machine, or an `s3:` or `https:` address from which the machine downloads. */
  readonly source: LocalSource | string;
  readonly target: string;
}

/** The files of a task. */
export interface TaskFiles {
  /** Local folder for the working directory; undefined: none. */
  readonly workdir: LocalSource | undefined;
  readonly mounts: readonly MountedFiles[];
}

/** The files of a task, with the copies of `takeSnapshot`. */
export function snapshotFiles(task: Task, { dir, name }: SnapshotLocation): TaskFiles {
  const workdir = join(dir, 'workdir');
  return {
    workdir: existsSync(workdir) ? { path: workdir, name: `${name}-workdir` } : undefined,
    mounts: task.fileMounts.map(({ source, target }, index) => ({
      source: source.kind === 'path' ? { path: join(dir, 'mounts', String(index)), name: `${name}-mount-${index}` } : source.uri,
      target,
    })),
  };
}

/** `from` may be a link, and may contain `to`. */
async function copy(from: string, to: string, home: string, skipped: string[]): Promise<void> {
  const source = await realpath(from);
  const own = relative(source, await realpath(home));
  const isIgnored = await ignoreRules(source, systemClock);
  await copyTree(source, to, {
    ignore: (path, isFolder) => path === own || isIgnored(path, isFolder),
    onSkipped: (path, stats) =>
      skipped.push(`${quote(path)} ${stats === undefined ? 'has a name that is not UTF-8' : `is ${kindOf(stats)}`}`),
  });
}

function noteOf(skipped: readonly string[]): string | undefined {
  if (skipped.length === 0) return undefined;
  const rest = skipped.length - namedAtMost;
  return `Not copied: ${skipped.slice(0, namedAtMost).join(', ')}${rest > 0 ? `, and ${rest} more` : ''}.`;
}
