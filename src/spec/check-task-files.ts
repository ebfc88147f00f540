import { stat } from 'node:fs/promises';
import type { Task } from '../domain/task.ts';
import { mountPath } from './read/mounts.ts';
import { openTask, printableAt, type TaskDocument, type TaskSource } from './task-document.ts';
import type { Path } from './yaml/node.ts';

/** Throws SVC_FILE_NOT_FOUND with each missing working directory, mount source, TLS file. `source`: the task's text. */
export async function checkTaskFiles(task: Task, source: TaskSource): Promise<void> {
  const found = await Promise.all(requiredFiles(task).map(missing));
  const all = found.filter((each) => each !== undefined);
  if (all.length === 0) return;
  const document = openTask(source);
  const inFile = all.filter(({ field }) => field !== 'workdir' || source.workdir === undefined);
  for (const each of inFile) {
    const path = pathOf(each, document);
    document.report.at(path, `${printableAt(document.root, path, each.path)} ${each.reason}`);
  }
  // A folder from the command line has no position in the file.
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

interface RequiredFile {
  readonly field: 'workdir' | 'keyfile' | 'certfile' | 'client_ca' | 'mount';
  readonly target?: string;
  readonly path: string;
  readonly kind: 'file' | 'folder' | 'any';
}

function requiredFiles({ workdir, fileMounts, service }: Task): readonly RequiredFile[] {
  const { tls } = service ?? {};
  return [
    ...(workdir?.kind === 'path' ? [{ field: 'workdir', path: workdir.path, kind: 'folder' } as const] : []),
    ...fileMounts.flatMap(({ target, source }) =>
      source.kind === 'path' ? [{ field: 'mount', target, path: source.path, kind: 'any' } as const] : [],
    ),
    ...(tls === undefined ? [] : (['keyfile', 'certfile'] as const).map((field) => ({ field, path: tls[field], kind: 'file' }) as const)),
    ...(tls?.clientCa === undefined ? [] : [{ field: 'client_ca', path: tls.clientCa, kind: 'file' } as const]),
  ];
}

function pathOf({ field, target }: RequiredFile, { root }: TaskDocument): Path {
  if (field === 'mount') return mountPath(root, target ?? '');
  return field === 'workdir' ? ['workdir'] : ['service', 'tls', field];
}

async function missing(file: RequiredFile): Promise<(RequiredFile & { readonly reason: string }) | undefined> {
  try {
    const stats = await stat(file.path);
    if (file.kind === 'folder' && !stats.isDirectory()) return { ...file, reason: 'is not a folder' };
    if (file.kind === 'file' && stats.isDirectory()) return { ...file, reason: 'is a folder, not a file' };
    return undefined;
  } catch {
    // Whatever the reason: the file cannot be copied.
    return { ...file, reason: 'does not exist or cannot be read' };
  }
}
