import { cp, mkdir, rm, stat } from 'node:fs/promises';
import { basename, dirname, join, posix } from 'node:path';
import type { Upload } from '../domain/upload-layout.ts';
import type { Remote } from '../remote/remote.ts';
import { shellQuote } from '../remote/shell-quote.ts';
import type { HomePaths } from '../shared/paths.ts';
import { controllerHome } from './install.ts';

/** What bringing files needs of this machine. */
export interface BringDeps {
  readonly paths: HomePaths;
  readonly signal: AbortSignal;
  readonly onStep: (text: string) => void;
}

/**
 * Copies what a task names to the controller's machine, below the name that the controller is told. It begins with a copy of what the same source
 * brought before (the part of the name before the dash), so that only what changed is sent.
 */
export async function bringFiles(remote: Remote, uploads: readonly Upload[], upload: string, deps: BringDeps): Promise<void> {
  const folder = posix.join(controllerHome(remote), 'uploads');
  const [source = ''] = upload.split('-', 1);
  const names = shellQuote(source);
  const begin = `umask 077; mkdir -p ${shellQuote(folder)} && cd ${shellQuote(folder)} && last=$(ls -dt -- ${names}-* 2>/dev/null | head -n 1); if [ -n "$last" ]; then cp -al -- "$last" ${shellQuote(upload)} 2>/dev/null || cp -a -- "$last" ${shellQuote(upload)}; touch -- ${shellQuote(upload)}; else mkdir -- ${shellQuote(upload)}; fi`;
  await remote.exec(['sh', '-c', begin], { signal: deps.signal });
  for (const one of uploads) {
    deps.onStep(`Bringing ${one.source} to the controller`);
    await bringOne(remote, one, posix.join(folder, upload, one.target), deps);
  }
}

/** Folders are what is copied, so a single file gets one of its own on the way. */
async function bringOne(remote: Remote, { source, secret }: Upload, target: string, { paths, signal }: BringDeps): Promise<void> {
  if ((await stat(source)).isDirectory()) return remote.copyTo(source, target, { signal });
  const staging = join(paths.home, 'cache', `staged-${basename(target)}-${process.pid}`);
  try {
    await mkdir(staging, { recursive: true, mode: 0o700 });
    await cp(source, join(staging, basename(target)), { mode: 0, dereference: true });
    return await remote.copyTo(staging, dirname(target), { signal, keepExtra: true });
  } finally {
    await rm(staging, { recursive: true, force: true });
    if (secret) await remote.exec(['chmod', '600', target], { signal });
  }
}
