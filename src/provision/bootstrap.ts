import { posix } from 'node:path';
import type { Task } from '../domain/task.ts';
import type { Remote } from '../remote/remote.ts';
import type { MountedFiles } from './file-mounts.ts';
import type { FileDelivery, LocalSource } from './files/delivery.ts';
import { placeFiles } from './place-files.ts';
import { jobStatus, startJob } from './job.ts';
import type { ProvisionLog } from './provision-log.ts';

/** What is to be put on a machine and started there. */
export interface Bootstrap {
  readonly task: Task;
  /** Folder on this machine whose content becomes the working directory; undefined for none. */
  readonly workdir: LocalSource | undefined;
  readonly mounts: readonly MountedFiles[];
  readonly delivery: FileDelivery;
  readonly jobName: string;
  readonly withSetup: boolean;
  /** Everything the commands see besides what the machine itself adds; holds secrets. */
  readonly env: Readonly<Record<string, string>>;
  readonly log: ProvisionLog;
  /** Whether `run` enters the machine's isolation, so that it has all ports to itself; else it shares the machine's network. */
  readonly isolated: boolean;
  /** Whether files that earlier jobs of the machine left in the working directory stay. */
  readonly keepExtra: boolean;
}

/** The working directory of a task on its machine. */
function remoteWorkdir(remote: Remote): string {
  return posix.join(remote.baseDir, 'workdir');
}

/**
 * Puts the files on a machine and starts the task's commands there, detached. Safe to repeat: a job that was started is left alone, and so are
 * its files, in which it may have written; before that the files are made equal again.
 */
export async function bootstrap(remote: Remote, what: Bootstrap, signal: AbortSignal): Promise<void> {
  if ((await jobStatus(remote, what.jobName)).phase !== 'absent') return;
  const workdir = remoteWorkdir(remote);
  await placeFiles(remote, workdir, what, signal);
  const { setup, run } = what.task;
  what.log(what.withSetup && setup !== undefined ? 'Starting setup, then run' : 'Starting run');
  await startJob(remote, what.jobName, {
    ...(what.withSetup && setup !== undefined ? { setup } : {}),
    ...(run === undefined ? {} : { run }),
    env: what.env,
    workdir,
    isolated: what.isolated,
  });
}
