import { stat } from 'node:fs/promises';
import type { Task } from '../domain/task.ts';
import { SvcError } from '../shared/errors.ts';
import { redact } from '../shared/redact.ts';

/**
 * Whether the local files that a task names are there: the working directory, sources of file mounts, TLS files.
 * Throws SVC_FILE_NOT_FOUND that names every one that is not.
 */
export async function checkTaskFiles(task: Task): Promise<void> {
  const wanted: readonly Wanted[] = [
    ...(task.workdir?.kind === 'path' ? [{ field: 'workdir', path: task.workdir.path, kind: 'folder' as const }] : []),
    ...task.fileMounts.flatMap(({ target, source }) => {
      return source.kind === 'path' ? [{ field: `file_mounts: ${target}`, path: source.path, kind: 'any' as const }] : [];
    }),
    ...(task.service?.tls === undefined
      ? []
      : [
          { field: 'service.tls.keyfile', path: task.service.tls.keyfile, kind: 'file' as const },
          { field: 'service.tls.certfile', path: task.service.tls.certfile, kind: 'file' as const },
        ]),
  ];
  const found = await Promise.all(wanted.map(problemWith));
  const problems = found.filter((problem) => problem !== undefined);
  if (problems.length === 0) return;
  const hint = 'Check the paths; relative ones start from the folder of the task file.';
  throw new SvcError('SVC_FILE_NOT_FOUND', redact(`${problems.join('; ')}.`, Object.values(task.secrets)), { hint });
}

interface Wanted {
  readonly field: string;
  readonly path: string;
  readonly kind: 'file' | 'folder' | 'any';
}

async function problemWith({ field, path, kind }: Wanted): Promise<string | undefined> {
  try {
    const stats = await stat(path);
    if (kind === 'folder' && !stats.isDirectory()) return `${field}: ${path} is not a folder`;
    if (kind === 'file' && stats.isDirectory()) return `${field}: ${path} is a folder, not a file`;
    return undefined;
  } catch {
    // Whatever the reason: it cannot be copied from there.
    return `${field}: ${path} does not exist or cannot be read`;
  }
}
