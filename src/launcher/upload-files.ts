import { chmod, copyFile, mkdir, rm } from 'node:fs/promises';
import { hostname } from 'node:os';
import { dirname, join, posix } from 'node:path';
import type { Task } from '../domain/task.ts';
import { uploadsOf } from '../domain/upload-layout.ts';
import { takeSnapshot } from '../provision/files/snapshot.ts';
import type { Remote } from '../remote/remote.ts';
import { shellQuote } from '../remote/shell-quote.ts';
import { fingerprint, randomHex } from '../shared/hex.ts';
import type { HomePaths } from '../shared/paths.ts';

/**
 * The name of an upload folder for a controller. Names of one source have the same prefix, so that only changes must be
 * sent.
 */
export function uploadName(source: string): string {
  return `${fingerprint(`${hostname()}\0${source}`)}-${randomHex(8)}`;
}

/** Dependencies of copying files. */
interface UploadDeps {
  readonly paths: HomePaths;
  readonly signal: AbortSignal;
  readonly onStep: (text: string) => void;
  /** SVC_HOME of the controller: an absolute path on its machine. */
  readonly home: string;
}

/**
 * Copies a task's files to the folder `upload` of the controller's home. Starts from the last upload of the same source
 * (the part of `upload` before the dash), so only changes are sent.
 */
export async function uploadFiles(remote: Remote, task: Task, upload: string, { paths, signal, onStep, home }: UploadDeps): Promise<void> {
  const staging = join(paths.home, 'cache', `upload-${upload}`);
  try {
    // The snapshot is made here, so that ignored files never leave this machine.
    await takeSnapshot(task, staging, paths.home);
    for (const { source, target } of uploadsOf(task).filter(({ secret }) => secret)) await copySecret(source, join(staging, target));
    onStep('Bringing the files of the task to the controller');
    const folder = posix.join(home, 'uploads');
    await remote.exec(['sh', '-c', beginWithLast(folder, upload)], { signal });
    await remote.copyTo(staging, posix.join(folder, upload), { signal });
  } finally {
    await rm(staging, { recursive: true, force: true });
  }
}

function beginWithLast(folder: string, upload: string): string {
  const [source = ''] = upload.split('-', 1);
  const name = shellQuote(upload);
  return [
    'umask 077',
    `mkdir -p ${shellQuote(folder)} && cd ${shellQuote(folder)} || exit 1`,
    `last=$(ls -dt -- ${shellQuote(source)}-* 2>/dev/null | head -n 1)`,
    // Hard links take no space. The copy replaces changed files, so the earlier upload stays unchanged.
    `if [ -n "$last" ]; then cp -al -- "$last" ${name} 2>/dev/null || cp -a -- "$last" ${name}; touch -- ${name}; fi`,
  ].join('; ');
}

async function copySecret(source: string, target: string): Promise<void> {
  await mkdir(dirname(target), { recursive: true, mode: 0o700 });
  await copyFile(source, target);
  await chmod(target, 0o600);
}
