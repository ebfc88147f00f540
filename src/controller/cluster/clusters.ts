import { mkdir, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { generateName, nameProblem } from '../../domain/names.ts';
import { collectOffers } from '../../provision/offers.ts';
import { SvcError } from '../../shared/errors.ts';
import { randomHex } from '../../shared/random-hex.ts';
import { checkTaskFiles } from '../../spec/check-task-files.ts';
import { parseTask } from '../../spec/parse-task.ts';
import { refuseUnsupported } from '../../spec/unsupported.ts';
import type { ClusterRecord, JobRecord } from '../../store/records.ts';
import type { ServiceRequest } from '../create-service.ts';
import type { DaemonContext } from '../daemon-context.ts';
import { takeSnapshot } from '../snapshot.ts';
import { ClusterDriver } from './cluster-driver.ts';
import { clusterPaths } from './cluster-paths.ts';

/** What `launch` or `exec` was asked for. */
export interface LaunchRequest extends Omit<ServiceRequest, 'name' | 'expose' | 'port'> {
  readonly cluster?: string | undefined;
  readonly mode: 'launch' | 'exec';
}

/** All clusters of this controller: single machines for single tasks. */
export class Clusters {
  readonly #context: DaemonContext;
  readonly #drivers = new Map<string, { readonly driver: ClusterDriver; readonly ended: Promise<void> }>();
  readonly #stop = new AbortController();

  constructor(context: DaemonContext) {
    this.#context = context;
  }

  /** Drives every recorded cluster; called at start and after each change. */
  async resume(): Promise<void> {
    for (const cluster of await this.#context.store.clusters.list()) {
      if (this.#drivers.has(cluster.key)) continue;
      const driver = new ClusterDriver(this.#context, cluster);
      const ended = driver
        .run(this.#stop.signal)
        .catch((error: unknown) => this.#context.log.error({ err: error, cluster: cluster.name }, 'a cluster could not be driven'))
        .finally(() => this.#drivers.delete(cluster.key));
      this.#drivers.set(cluster.key, { driver, ended });
    }
  }

  /** Lets go of all clusters; their jobs go on. */
  async release(): Promise<void> {
    this.#stop.abort();
    await Promise.all([...this.#drivers.values()].map(({ ended }) => ended));
  }

  /** Records a job, and the cluster for it unless it exists; from there its driver takes over. */
  async launch(request: LaunchRequest): Promise<{ readonly cluster: ClusterRecord; readonly job: JobRecord }> {
    const { store, paths, clock } = this.#context;
    const parsed = parseTask({ ...request, workdir: request.workdir });
    const task = request.mode === 'exec' ? { ...parsed, setup: undefined } : parsed;
    refuseUnsupported({ ...task, service: undefined }, request);
    await checkTaskFiles(task, request);
    const existing = request.cluster === undefined ? undefined : await store.clusters.get(request.cluster);
    if (existing === undefined && request.mode === 'exec') {
      throw new SvcError('SVC_CLUSTER_NOT_FOUND', `There is no cluster named '${request.cluster ?? ''}'.`);
    }
    if (existing?.state === 'SHUTTING_DOWN' || existing?.state === 'FAILED') {
      throw new SvcError('SVC_NAME_IN_USE', `Cluster '${existing.name}' is ${existing.state}.`, {
        hint: `Take it down first: svc down ${existing.name}`,
      });
    }
    const name = request.cluster ?? generateName(this.#context.random);
    const problem = nameProblem(name);
    if (problem !== undefined) throw new SvcError('SVC_BAD_NAME', problem);
    if (existing === undefined) await collectOffers(task.resources, await this.#context.providers());
    const staging = join(paths.clustersDir, `.new-${randomHex(8)}`);
    await takeSnapshot(task, staging);
    try {
      const cluster = existing ?? (await this.#add(name));
      const job = await store.clusters.addJob({
        cluster: cluster.name,
        state: 'PENDING',
        task,
        createdAt: clock.now(),
        startedAt: null,
        endedAt: null,
        exitCode: null,
      });
      // The driver looks for the snapshot when it starts the job, which it is told to do only afterwards.
      const target = clusterPaths(paths, cluster.name).snapshot(job.id);
      await rm(target, { recursive: true, force: true });
      await rename(staging, await parentMade(target));
      await this.resume();
      return { cluster, job };
    } catch (error) {
      await rm(staging, { recursive: true, force: true });
      throw error;
    }
  }

  /** Sends a cluster on its way out. */
  async terminate(name: string, purge: boolean): Promise<void> {
    const { store, clock } = this.#context;
    for (;;) {
      const cluster = await store.clusters.get(name);
      if (cluster === undefined) throw new SvcError('SVC_CLUSTER_NOT_FOUND', `There is no cluster named '${name}'.`);
      const event = {
        at: clock.now(),
        subject: name,
        subjectKey: cluster.key,
        replicaId: null,
        from: cluster.state,
        to: 'SHUTTING_DOWN',
        cause: 'user',
        message: purge ? 'Taken down by force.' : 'Taken down.',
      };
      if (cluster.state !== 'SHUTTING_DOWN' && (await store.clusters.update(cluster, { state: 'SHUTTING_DOWN' }, event)) === undefined)
        continue;
      this.#drivers.get(cluster.key)?.driver.interrupt();
      await this.resume();
      return;
    }
  }

  async #add(name: string): Promise<ClusterRecord> {
    const { store, clock } = this.#context;
    const key = randomHex(8);
    const cluster: ClusterRecord = {
      name,
      key,
      state: 'INIT',
      machineKey: `${key}-${randomHex(6)}`,
      machineId: null,
      place: null,
      createdAt: clock.now(),
      reason: null,
      revision: 0,
    };
    await store.clusters.add(cluster, {
      at: clock.now(),
      subject: name,
      subjectKey: key,
      replicaId: null,
      from: null,
      to: 'INIT',
      cause: 'launch',
      message: 'Launched.',
    });
    return cluster;
  }
}

async function parentMade(path: string): Promise<string> {
  await mkdir(join(path, '..'), { recursive: true, mode: 0o700 });
  return path;
}
