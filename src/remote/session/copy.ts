import { lstat } from 'node:fs/promises';
import { dirname } from 'node:path';
import type { CopyToOptions } from '../remote.ts';
import { runCaptured } from './captured.ts';
import type { SessionMachine } from './session-machine.ts';
import { copyFileByCat, copyFolderByTar } from './tar-copy.ts';
import { plainWords, workError } from './work-error.ts';

/** Makes room for a folder: removes anything else at its path and creates it. */
const prepareFolder = `[ ! -L "$1" ] || rm -f -- "$1"
[ -d "$1" ] || rm -f -- "$1"
mkdir -p -- "$1"`;

/** Makes room for a file: removes a folder at its path. */
const prepareFile = `mkdir -p -- "$2"
[ -L "$1" ] || [ ! -d "$1" ] || rm -rf -- "$1"`;

/** A shared folder may be a link to a folder, and others' files stay. */
const joinFolder = `[ -d "$1" ] || mkdir -p -- "$1"`;

const joinFile = `[ ! -d "$1" ] || { echo "$1 is a folder there" >&2; exit 1; }
mkdir -p -- "$2"`;

function preparation(isFolder: boolean, isShared: boolean): string {
  if (isShared) return isFolder ? joinFolder : joinFile;
  return isFolder ? prepareFolder : prepareFile;
}

/** Makes room, then copies a folder or file: by `byOther` if that works (it returns whether it did), else by tar. */
export async function copyToMachine(
  machine: SessionMachine,
  localDir: string,
  remoteDir: string,
  options: CopyToOptions,
  byOther: (isFolder: boolean) => Promise<boolean> = () => Promise.resolve(false),
): Promise<void> {
  const { signal } = options;
  signal?.throwIfAborted();
  const isFolder = (await lstat(localDir)).isDirectory();
  const argv = ['sh', '-c', preparation(isFolder, options.isShared === true), 'sh', remoteDir, dirname(remoteDir)];
  const { exitCode, stderr } = await runCaptured(machine, { argv, env: plainWords, signal, isRepeatable: true, lane: 'copy' });
  if (exitCode !== 0) throw workError(machine, `The folder ${remoteDir} could not be made`, stderr);
  if (await byOther(isFolder)) return;
  if (isFolder) await copyFolderByTar(machine, localDir, remoteDir, options);
  else await copyFileByCat(machine, localDir, remoteDir, options);
}
