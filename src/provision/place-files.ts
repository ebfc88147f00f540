import { join, posix } from 'node:path';
import type { Remote } from '../remote/remote.ts';
import { SvcError } from '../shared/errors.ts';
import { fingerprint } from '../shared/fingerprint.ts';
import { printable } from '../shared/quote.ts';
import { isOutsideWorkdir, type MountedFiles } from './file-mounts.ts';
import type { FileDelivery, LocalSource } from './files/delivery.ts';
import { fetchTree, type FetchPlan } from './files/fetch.ts';
import { megabytes } from './files/progress-line.ts';
import type { ProvisionLog } from './provision-log.ts';

/** The files of one job. */
export interface JobFiles {
  readonly workdir: LocalSource | undefined;
  readonly mounts: readonly MountedFiles[];
  readonly delivery: FileDelivery;
  readonly log: ProvisionLog;
  /** Whether files that earlier jobs of the machine left in the working directory stay. */
  readonly keepExtra: boolean;
}

/**
 * Makes the working directory of a machine and everything that is mounted equal to what they come from. Targets outside the working directory are
 * filled and nothing there is removed, as it may be somebody else's.
 */
export async function placeFiles(remote: Remote, workdir: string, files: JobFiles, signal: AbortSignal): Promise<void> {
  const { workdir: source, delivery, log, keepExtra } = files;
  if (source === undefined) {
    await remote.exec(['mkdir', '-p', workdir], { signal });
  } else {
    const place = { remote, target: workdir, shown: 'the working directory', keepExtra, isShared: false };
    await placeLocal(place, source, delivery, log, signal);
  }
  for (const mount of files.mounts) {
    const target = await targetPath(remote, workdir, mount.target, signal);
    const isShared = isOutsideWorkdir(mount.target);
    const place = { remote, target, shown: printable(mount.target), keepExtra: isShared, isShared };
    if (typeof mount.source !== 'string') await placeLocal(place, mount.source, delivery, log, signal);
    else await placeFetched(place, await delivery.fetchable(mount.source, signal), log, signal);
  }
}

interface Place {
  readonly remote: Remote;
  /** Absolute */
  readonly target: string;
  /** For people. */
  readonly shown: string;
  readonly keepExtra: boolean;
  /** Somebody else's as well. */
  readonly isShared: boolean;
}

async function placeLocal(
  place: Place,
  source: LocalSource,
  delivery: FileDelivery,
  log: ProvisionLog,
  signal: AbortSignal,
): Promise<void> {
  const plan = await delivery.publish(source, log, signal);
  if (plan !== undefined) return placeFetched(place, plan, log, signal);
  log(`Copying ${place.shown}`);
  return place.remote.copyTo(source.path, place.target, { signal, keepExtra: place.keepExtra, isShared: place.isShared });
}

async function placeFetched(
  { remote, target, shown, keepExtra }: Place,
  plan: FetchPlan,
  log: ProvisionLog,
  signal: AbortSignal,
): Promise<void> {
  const bytes = plan.downloads.reduce((total, { size = 0 }) => total + size, 0);
  log(`Fetching ${shown} on the machine${bytes === 0 ? '' : ` (${megabytes(bytes)} MB)`}`);
  const workDir = posix.join(remote.baseDir, 'files', fingerprint(target));
  await fetchTree(remote, plan, { path: target, merge: keepExtra, workDir }, signal);
}

/** Where a target is on the machine, with the home folder that the machine says it has. */
async function targetPath(remote: Remote, workdir: string, target: string, signal: AbortSignal): Promise<string> {
  if (!target.startsWith('~')) return posix.resolve(workdir, target);
  const { stdout } = await remote.exec(['sh', '-c', 'printf %s "$HOME"'], { signal });
  if (!stdout.startsWith('/'))
    throw new SvcError('SVC_HOST_UNFIT', `The machine does not say where ${printable(target)} is: it has no HOME.`);
  return join(stdout, target.slice(1));
}
