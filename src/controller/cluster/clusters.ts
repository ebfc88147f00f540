import { existsSync } from 'node:fs';
import { mkdir, rename, rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { generateName, nameProblem } from '../../domain/names.ts';
import { refuseMountsAnywhere } from '../../provision/file-mounts.ts';
import { collectOffersNow } from '../../provision/offers.ts';
import { SvcError } from '../../shared/errors.ts';
import { namesOf, notNamed } from '../../shared/did-you-mean.ts';
import { randomHex } from '../../shared/hex.ts';
import { checkTaskFiles } from '../../spec/check-task-files.ts';
import { parseTask } from '../../spec/parse-task.ts';
import { refuseUnsupported } from '../../spec/unsupported.ts';
import { type ClusterRecord, type JobRecord, subjectEvent } from '../../domain/records.ts';
import type { ServiceRequest } from '../deploy/deploy-service.ts';
import type { DaemonContext } from '../daemon-context.ts';
import { clusterDeployment } from '../deploy/deployments.ts';
import { foldersIn } from '../folders-in.ts';
import type { Leftovers } from '../leftovers.ts';
import { takeSnapshot } from '../../provision/files/snapshot.ts';
import { serviceFiles, type ServiceFiles } from '../deploy/service-files.ts';
import { withUploaded } from '../deploy/uploads.ts';
import { ClusterDriver } from './cluster-driver.ts';
import type { ClusterPort } from './cluster-ports.ts';
import { clusterPaths } from './cluster-paths.ts';

/** Input of `launch` or `exec`. */
export interface LaunchRequest extends Omit<ServiceRequest, 'name' | 'expose' | 'port'> {
  readonly cluster?: string | undefined;
  readonly mode: 'launch' | 'exec';
}

const keptName = ({ id }: Pick<JobRecord, 'id'>): string => `jobs/${id}`;

/** All clusters of this controller. */
export class Clusters {
  readonly #context: DaemonContext;
  readonly #files: ServiceFiles;
  readonly #leftovers: Leftovers;
  readonly #drivers = new Map<string, { readonly driver: ClusterDriver; readonly ended: Promise<void> }>();
  readonly #stop = new AbortController();

  constructor(context: DaemonContext, leftovers: Leftovers) {
    this.#context = context;
    this.#leftovers = leftovers;
    this.#files = serviceFiles(context.store);
  }

  get size(): number {
    return this.#drivers.size;
  }

  /** Where the ports of a cluster are reached; none while it is not up. */
  portsOf(key: string): readonly ClusterPort[] {
    return this.#drivers.get(key)?.driver.ports ?? [];
  }

  /** After a start: ends or removes what an earlier daemon left incomplete, then drives every cluster. */
  async recover(): Promise<void> {
    const { store, paths, clock } = this.#context;
    const clusters = await store.clusters.list();
    const known = new Set(clusters.map((cluster) => cluster.key));
    for (const name of foldersIn(paths.clustersDir))
      if (!known.has(name) && !(await this.#leftovers.claims('cluster', name)))
        await rm(join(paths.clustersDir, name), { recursive: true, force: true });
    for (const cluster of clusters) {
      const jobs = await store.clusters.jobs(cluster.name);
      for (const job of jobs) {
        if (job.endedAt !== null) continue;
        await this.#restoreFiles(cluster, job);
        const isHalfMade = job.state === 'PENDING' && !existsSync(clusterPaths(paths, cluster.key).snapshot(job.id));
        if (isHalfMade) await store.clusters.updateJob(job, { state: 'FAILED', endedAt: clock.now() });
      }
      if (jobs.length === 0 && cluster.state === 'INIT') {
        const message = 'Its launch was interrupted before it had a job.';
        await store.clusters.remove(
          cluster.name,
          cluster.key,
          subjectEvent(cluster, { at: clock.now(), from: 'INIT', cause: 'interrupted', message }),
        );
      }
    }
    await this.resume();
  }

  /** Drives every recorded cluster; call it after each change. */
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

  /** Stops driving all clusters; their jobs continue. */
  async release(): Promise<void> {
    this.#stop.abort();
    await Promise.all([...this.#drivers.values()].map(({ ended }) => ended));
  }

  /** Records a job, and its cluster unless it exists. The cluster's driver takes over from the record. */
  async launch(request: LaunchRequest): Promise<{ readonly cluster: ClusterRecord; readonly job: JobRecord }> {
    const { store, paths, clock } = this.#context;
    const parsed = withUploaded(parseTask({ ...request, workdir: request.workdir }), request.upload, paths);
    const task = request.mode === 'exec' ? { ...parsed, setup: undefined } : parsed;
    refuseUnsupported({ ...task, service: undefined }, request);
    await checkTaskFiles(task, request);
    const existing = request.cluster === undefined ? undefined : await store.clusters.get(request.cluster);
    if (existing === undefined && request.mode === 'exec') {
      throw notNamed('cluster', request.cluster ?? '', namesOf(await store.clusters.list()));
    }
    if (existing?.state === 'SHUTTING_DOWN' || existing?.state === 'FAILED') {
      throw new SvcError('SVC_NAME_IN_USE', `Cluster '${existing.name}' is ${existing.state}.`, {
        hint: `Take it down first: svc down ${existing.name}`,
      });
    }
    if (existing !== undefined) await this.#refuseMoreNodes(existing, task.numNodes);
    const name = request.cluster ?? generateName(this.#context.random);
    const problem = nameProblem(name);
    if (problem !== undefined) throw new SvcError('SVC_BAD_NAME', problem);
    const used =
      existing === undefined
        ? (
            await collectOffersNow(task.resources, () => this.#context.states(), {
              clock,
              nodes: task.numNodes,
              providerConfig: task.providerConfig,
            })
          ).candidates.map(({ offer }) => offer.provider)
        : [existing.offer?.provider ?? []].flat();
    refuseMountsAnywhere(task, await Promise.all([...new Set(used)].map((provider) => this.#context.provider(provider))));
    const staging = join(paths.clustersDir, `.new-${randomHex(8)}`);
    await mkdir(staging, { recursive: true, mode: 0o700 });
    try {
      await takeSnapshot(task, staging, paths.home);
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
      // The folder's existence signals that the job may start: the driver waits for it.
      const target = clusterPaths(paths, cluster.key).snapshot(job.id);
      await this.#keepFiles(cluster, job, staging);
      await mkdir(dirname(target), { recursive: true, mode: 0o700 });
      await rename(staging, target);
      await this.resume();
      return { cluster, job };
    } catch (error) {
      await rm(staging, { recursive: true, force: true });
      throw error;
    }
  }

  /** Removes buckets and files of a cluster that no longer has a machine. */
  async forget(name: string, key: string): Promise<void> {
    const { dir } = clusterPaths(this.#context.paths, key);
    await clusterDeployment(dir, { ...this.#context, name, key }).remove(this.#stop.signal);
    await this.#files.remove(key);
    await rm(dir, { recursive: true, force: true });
  }

  async terminate(name: string, purge: boolean): Promise<void> {
    const { store, clock } = this.#context;
    for (;;) {
      const cluster = await store.clusters.get(name);
      if (cluster === undefined) throw notNamed('cluster', name, namesOf(await store.clusters.list()));
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
      await this.resume();
      this.#drivers.get(cluster.key)?.driver.interrupt(purge);
      return;
    }
  }

  /** A cluster has as many nodes as its first job requested. */
  async #refuseMoreNodes({ name }: ClusterRecord, requested: number): Promise<void> {
    const [first] = await this.#context.store.clusters.jobs(name);
    const nodes = first?.task.numNodes ?? 1;
    if (requested <= nodes) return;
    const count = nodes === 1 ? '1 node' : `${nodes} nodes`;
    throw new SvcError('SVC_INVALID_TASK', `Cluster '${name}' has ${count}, and the task wants ${requested} (num_nodes).`, {
      hint: 'Launch it on a cluster of its own, or write a smaller num_nodes.',
    });
  }

  /** A job whose files cannot be kept for other controllers never starts. */
  async #keepFiles({ key }: ClusterRecord, job: JobRecord, path: string): Promise<void> {
    try {
      await this.#files.save(key, keptName(job), path);
    } catch (error) {
      await this.#context.store.clusters.updateJob(job, { state: 'FAILED', endedAt: this.#context.clock.now() });
      throw error;
    }
  }

  /** A job with damaged files gets none. The other jobs must still be restored. */
  async #restoreFiles({ name, key }: ClusterRecord, job: JobRecord): Promise<void> {
    try {
      await this.#files.restore(key, keptName(job), clusterPaths(this.#context.paths, key).snapshot(job.id));
    } catch (error) {
      if (!(error instanceof SvcError) || error.code !== 'SVC_STATE_CORRUPT') throw error;
      this.#context.log.error({ err: error, cluster: name, job: job.id }, 'the files of a job cannot be restored');
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
      offer: null,
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
