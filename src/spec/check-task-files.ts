import { stat } from 'node:fs/promises';
import type { Task } from '../domain/task.ts';
import { mountPath } from './read/mounts.ts';
import { openTask, printableAt, type TaskDocument, type TaskSource } from './task-document.ts';
import type { Path } from './yaml/node.ts';

/**
 * Whether the local files that a task names are there: the working directory, sources of file mounts, TLS files.
 * Throws SVC_FILE_NOT_FOUND with a problem for every one that is not. `source` is what the task was read from.
 */
export async function checkTaskFiles(task: Task, source: TaskSource): Promise<void> {
  const found = await Promise.all(wantedBy(task).map(missing));
  const all = found.filter((each) => each !== undefined);
  if (all.length === 0) return;
  const document = openTask(source);
  const inFile = all.filter(({ field }) => field !== 'workdir' || source.workdir === undefined);
  for (const each of inFile) {
    const path = placeOf(each, document);
    document.report.at(path, `${printableAt(document.root, path, each.path)} ${each.reason}`);
  }
  // A folder given on the command line has no place in the file.
  const given = all.find((each) => !inFile.includes(each));
  const messages = [
    ...(given === undefined ? [] : [`The working directory ${given.path}, given beside the file, ${given.reason}.`]),
    ...(inFile.length === 0
      ? []
      : [`${inFile.length === 1 ? 'A path' : `${inFile.length} paths`} in the task file ${source.file} cannot be used.`]),
  ];
  const hint =
    given === undefined ? 'Check the paths; relative ones start from the folder of the task file.' : 'Check the paths, and --workdir.';
  throw document.report.toError('SVC_FILE_NOT_FOUND', 'The task file', { message: messages.join(' '), hint });
}

interface Wanted {
  readonly field: 'workdir' | 'keyfile' | 'certfile' | 'mount';
  /** Of a mount. */
  readonly target?: string;
  readonly path: string;
  readonly kind: 'file' | 'folder' | 'any';
}

function wantedBy({ workdir, fileMounts, service }: Task): readonly Wanted[] {
  const { tls } = service ?? {};
  return [
    ...(workdir?.kind === 'path' ? [{ field: 'workdir', path: workdir.path, kind: 'folder' } as const] : []),
    ...fileMounts.flatMap(({ target, source }) =>
      source.kind === 'path' ? [{ field: 'mount', target, path: source.path, kind: 'any' } as const] : [],
    ),
    ...(tls === undefined ? [] : (['keyfile', 'certfile'] as const).map((field) => ({ field, path: tls[field], kind: 'file' }) as const)),
  ];
}

function placeOf({ field, target }: Wanted, { root }: TaskDocument): Path {
  if (field === 'mount') return mountPath(root, target ?? '');
  return field === 'workdir' ? ['workdir'] : ['service', 'tls', field];
}

async function missing(wanted: Wanted): Promise<(Wanted & { readonly reason: string }) | undefined> {
  try {
    const stats = await stat(wanted.path);
    if (wanted.kind === 'folder' && !stats.isDirectory()) return { ...wanted, reason: 'is not a folder' };
    if (wanted.kind === 'file' && stats.isDirectory()) return { ...wanted, reason: 'is a folder, not a file' };
    return undefined;
  } catch {
    // Whatever the reason: it cannot be copied from there.
    return { ...wanted, reason: 'does not exist or cannot be read' };
  }
}
