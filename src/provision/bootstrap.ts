import { join, posix } from 'node:path';
import type { Task } from '../domain/task.ts';
import type { MachineId, MachineNode, Provider } from '../providers/provider.ts';
import type { Remote } from '../remote/remote.ts';
import { isOutsideWorkdir } from './file-mounts.ts';
import type { FileDelivery, LocalSource } from './files/delivery.ts';
import { type SnapshotLocation, type TaskFiles, snapshotFiles } from './files/snapshot.ts';
import { jobStatus, startJob } from './job.ts';
import { machineNodes, nodeLabel } from './node-jobs.ts';
import { type ProvisionLog, megabytes } from './provision-log.ts';
import { SvcError } from '../shared/errors.ts';
import { fingerprint } from '../shared/hex.ts';
import { printable } from '../shared/text.ts';
import { type FetchPlan, fetchTree } from './files/fetch.ts';

/** The facts that `setup` and `run` can read. */
interface ReplicaIdentity {
  readonly owner: string;
  readonly replicaId: number | undefined;
  readonly taskId: string;
  readonly port: number | undefined;
  readonly gpus: number;
  /** `ips`: of all nodes, by rank. A single node has its loopback address. */
  readonly node: { readonly rank: number; readonly ips: readonly string[] };
}

interface JobMachine {
  readonly provider: Pick<Provider, 'name' | 'remote' | 'nodes'>;
  readonly id: MachineId;
}

interface Bootstrap {
  readonly task: Task;
  readonly snapshot: SnapshotLocation;
  readonly delivery: FileDelivery;
  readonly jobName: string;
  readonly identity: Omit<ReplicaIdentity, 'node'>;
  readonly log: ProvisionLog;
  /** Whether `run` enters the machine's network isolation, where all ports are free. */
  readonly isolated: boolean;
  /** Whether files of earlier jobs stay in the working directory. */
  readonly keepExtra: boolean;
}

function remoteWorkdir(remote: Remote): string {
  return posix.join(remote.baseDir, 'workdir');
}

/**
 * Copies the files to a machine's nodes and starts the commands, detached. Returns the nodes. With several nodes, the
 * process that watches the job starts `run` when all are prepared. Safe to repeat: before the start, it makes the files
 * equal to their sources again. Later it leaves the job and its files alone, because the job may have changed them.
 */
export async function bootstrap({ provider, id }: JobMachine, what: Bootstrap, signal: AbortSignal): Promise<readonly MachineNode[]> {
  const nodes = await machineNodes(provider, id, what.task.numNodes, signal);
  const files = snapshotFiles(what.task, what.snapshot);
  const isGroup = nodes.length > 1;
  const failed = new AbortController();
  const both = AbortSignal.any([signal, failed.signal]);
  const ips = nodes.map(({ ip }) => ip);
  const prepare = (node: MachineNode): Promise<void> => {
    const log: ProvisionLog = isGroup ? (line) => what.log(`(${nodeLabel(node)}) ${line}`) : what.log;
    const env = taskEnvironment(what.task, { ...what.identity, node: { rank: node.rank, ips } });
    return prepareNode(node.remote, { ...what, ...files, log, env, waits: isGroup }, both);
  };
  // Report the failure only when all preparations have ended: a retry would write to the same files at the same time.
  await Promise.allSettled(nodes.map((node) => prepare(node).catch((error: unknown) => failed.abort(error))));
  failed.signal.throwIfAborted();
  return nodes;
}

interface NodeBootstrap extends JobFiles, Pick<Bootstrap, 'task' | 'jobName' | 'isolated'> {
  /** In addition to the machine's environment. Contains secrets. */
  readonly env: Readonly<Record<string, string>>;
  readonly waits: boolean;
}

async function prepareNode(remote: Remote, what: NodeBootstrap, signal: AbortSignal): Promise<void> {
  if ((await jobStatus(remote, what.jobName)).phase !== 'absent') return;
  const workdir = remoteWorkdir(remote);
  await deliverFiles(remote, workdir, what, signal);
  const { setup, run } = what.task;
  what.log(setup !== undefined ? 'Starting setup, then run' : 'Starting run');
  await startJob(remote, what.jobName, {
    ...(setup !== undefined ? { setup } : {}),
    ...(run === undefined ? {} : { run }),
    env: what.env,
    workdir,
    isolated: what.isolated,
    waits: what.waits,
  });
}

/**
 * The file's `envs` and `secrets` (secrets win, as in SkyPilot), then svc's variables. Each of these also has its
 * SkyPilot name, so that programs written for SkyPilot work unchanged.
 */
export function taskEnvironment(task: Task, identity: ReplicaIdentity): Readonly<Record<string, string>> {
  const gpus = String(identity.gpus);
  const { rank, ips } = identity.node;
  const nodeRank = String(rank);
  const nodeIps = ips.join('\n');
  const numNodes = String(ips.length);
  return {
    ...task.envs,
    ...task.secrets,
    SVC_NUM_GPUS_PER_NODE: gpus,
    SVC_NODE_RANK: nodeRank,
    SVC_NODE_IPS: nodeIps,
    SVC_NUM_NODES: numNodes,
    SVC_TASK_ID: identity.taskId,
    SVC_SERVICE_NAME: identity.owner,
    SKYPILOT_NUM_GPUS_PER_NODE: gpus,
    SKYPILOT_NODE_RANK: nodeRank,
    SKYPILOT_NODE_IPS: nodeIps,
    SKYPILOT_NUM_NODES: numNodes,
    SKYPILOT_TASK_ID: identity.taskId,
    SKYPILOT_SETUP_NUM_GPUS_PER_NODE: gpus,
    SKYPILOT_SETUP_NODE_RANK: nodeRank,
    SKYPILOT_SETUP_NODE_IPS: nodeIps,
    ...(identity.port === undefined ? {} : { SVC_REPLICA_PORT: String(identity.port) }),
    ...(identity.replicaId === undefined
      ? {}
      : { SVC_REPLICA_ID: String(identity.replicaId), SKYPILOT_SERVE_REPLICA_ID: String(identity.replicaId) }),
  };
}

/** The files of one job. */
export interface JobFiles extends TaskFiles {
  readonly delivery: FileDelivery;
  readonly log: ProvisionLog;
  readonly keepExtra: boolean;
}

/**
 * Makes a machine's working directory and mounts equal to their sources. Nothing is removed from targets outside the
 * working directory: other programs may have files there.
 */
export async function deliverFiles(remote: Remote, workdir: string, files: JobFiles, signal: AbortSignal): Promise<void> {
  const { workdir: source, delivery, log, keepExtra } = files;
  if (source === undefined) {
    await remote.exec(['mkdir', '-p', workdir], { signal });
  } else {
    const destination = { remote, target: workdir, shown: 'the working directory', keepExtra, isShared: false };
    await deliverLocal(destination, source, delivery, log, signal);
  }
  for (const mount of files.mounts) {
    const target = await targetPath(remote, workdir, mount.target, signal);
    const isShared = isOutsideWorkdir(mount.target);
    const destination = { remote, target, shown: printable(mount.target), keepExtra: isShared, isShared };
    if (typeof mount.source !== 'string') await deliverLocal(destination, mount.source, delivery, log, signal);
    else await deliverFetched(destination, await delivery.fetchable(mount.source, signal), log, signal);
  }
}

interface DeliveryTarget {
  readonly remote: Remote;
  readonly target: string;
  readonly shown: string;
  readonly keepExtra: boolean;
  /** Whether other programs may have files there. */
  readonly isShared: boolean;
}

async function deliverLocal(
  destination: DeliveryTarget,
  source: LocalSource,
  delivery: FileDelivery,
  log: ProvisionLog,
  signal: AbortSignal,
): Promise<void> {
  const plan = await delivery.publish(source, log, signal);
  if (plan !== undefined) return deliverFetched(destination, plan, log, signal);
  log(`Copying ${destination.shown}`);
  return destination.remote.copyTo(source.path, destination.target, {
    signal,
    keepExtra: destination.keepExtra,
    isShared: destination.isShared,
  });
}

async function deliverFetched(
  { remote, target, shown, keepExtra }: DeliveryTarget,
  plan: FetchPlan,
  log: ProvisionLog,
  signal: AbortSignal,
): Promise<void> {
  const bytes = plan.downloads.reduce((total, { size = 0 }) => total + size, 0);
  log(`Fetching ${shown} on the machine${bytes === 0 ? '' : ` (${megabytes(bytes)} MB)`}`);
  const workDir = posix.join(remote.baseDir, 'files', fingerprint(target));
  await fetchTree(remote, plan, { path: target, merge: keepExtra, workDir }, signal);
}

/** `~/` is the machine's own home folder. */
async function targetPath(remote: Remote, workdir: string, target: string, signal: AbortSignal): Promise<string> {
  if (!target.startsWith('~')) return posix.resolve(workdir, target);
  const { stdout } = await remote.exec(['sh', '-c', 'printf %s "$HOME"'], { signal });
  if (!stdout.startsWith('/'))
    throw new SvcError('SVC_HOST_UNFIT', `The machine does not say where ${printable(target)} is: it has no HOME.`);
  return join(stdout, target.slice(1));
}
