import { posix } from 'node:path';
import type { Task } from '../domain/task.ts';
import type { MachineNode } from '../providers/provider.ts';
import type { Remote } from '../remote/remote.ts';
import type { MountedFiles } from './file-mounts.ts';
import type { FileDelivery, LocalSource } from './files/delivery.ts';
import { placeFiles } from './place-files.ts';
import { jobStatus, startJob } from './job.ts';
import { nodeLabel } from './node-jobs.ts';
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
  /** Everything the commands see on a node besides what the machine itself adds; holds secrets. `nodes` is all of them, by rank. */
  readonly env: (node: MachineNode, nodes: readonly MachineNode[]) => Readonly<Record<string, string>>;
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
 * Puts the files on the nodes of a machine and starts the task's commands there, detached; with several nodes, `run` begins when whoever watches the
 * job sees that all are prepared. Safe to repeat: a job that was started is left alone, and so are its files, in which it may have written; before that
 * the files are made equal again.
 */
export async function bootstrap(nodes: readonly MachineNode[], what: Bootstrap, signal: AbortSignal): Promise<void> {
  const isGroup = nodes.length > 1;
  const failed = new AbortController();
  const both = AbortSignal.any([signal, failed.signal]);
  const prepare = (node: MachineNode): Promise<void> => {
    const log: ProvisionLog = isGroup ? (line) => what.log(`(${nodeLabel(node)}) ${line}`) : what.log;
    return prepareNode(node.remote, { ...what, log, env: what.env(node, nodes), waits: isGroup }, both);
  };
  // Nothing goes on for a group that failed: whoever tries again would have two at the same files.
  await Promise.allSettled(nodes.map((node) => prepare(node).catch((error: unknown) => failed.abort(error))));
  failed.signal.throwIfAborted();
}

interface NodeBootstrap extends Omit<Bootstrap, 'env'> {
  readonly env: Readonly<Record<string, string>>;
  readonly waits: boolean;
}

async function prepareNode(remote: Remote, what: NodeBootstrap, signal: AbortSignal): Promise<void> {
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
    waits: what.waits,
  });
}
