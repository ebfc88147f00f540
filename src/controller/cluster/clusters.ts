import { existsSync } from 'node:fs';
import { mkdir, rename, rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { generateName, nameProblem } from '../../domain/names.ts';
import { refuseMountsAnywhere } from '../../provision/mounts-anywhere.ts';
import { collectOffers } from '../../provision/offers.ts';
import { SvcError } from '../../shared/errors.ts';
import { namesOf, notNamed } from '../../shared/not-named.ts';
import { randomHex } from '../../shared/random-hex.ts';
import { checkTaskFiles } from '../../spec/check-task-files.ts';
import { parseTask } from '../../spec/parse-task.ts';
import { refuseUnsupported } from '../../spec/unsupported.ts';
import type { ClusterRecord, JobRecord } from '../../store/records.ts';
import type { ServiceRequest } from '../create-service.ts';
import type { DaemonContext } from '../daemon-context.ts';
import { foldersIn } from '../folders-in.ts';
import { takeSnapshot } from '../../provision/files/snapshot.ts';
import { serviceFiles, type ServiceFiles } from '../service-files.ts';
import { withUploaded } from '../uploads.ts';
import { ClusterDriver } from './cluster-driver.ts';
import { clusterPaths } from './cluster-paths.ts';
import { subjectEvent } from '../subject-event.ts';

/** What `launch` or `exec` was asked for. */
export interface LaunchRequest extends Omit<ServiceRequest, 'name' | 'expose' | 'port'> {
  readonly cluster?: string | undefined;
  readonly mode: 'launch' | 'exec';
}

/** Under which name the files of a job are kept. */
const keptName = ({ id }: Pick<JobRecord, 'id'>): string => `jobs/${id}`;

/** All clusters of this controller: single machines for single tasks. */
export class Clusters {
  readonly #context: DaemonContext;
  readonly #files: ServiceFiles;
  readonly #drivers = new Map<string, { readonly driver: ClusterDriver; readonly ended: Promise<void> }>();
  readonly #stop = new AbortController();

  constructor(context: DaemonContext) {
    this.#context = context;
    this.#files = serviceFiles(context.store);
  }

  /** Clusters that are being driven. */
  get size(): number {
    return this.#drivers.size;
  }

  /** After a start: what an earlier daemon left half made is ended or removed, then every cluster is driven on. */
  async recover(): Promise<void> {
    const { store, paths, clock } = this.#context;
    const clusters = await store.clusters.list();
    const known = new Set(clusters.map((cluster) => cluster.key));
    for (const name of foldersIn(paths.clustersDir))
      if (!known.has(name)) await rm(join(paths.clustersDir, name), { recursive: true, force: true });
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

  /** Drives every recorded cluster; called after each change. */
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
            await collectOffers(task.resources, await this.#context.states(), {
              clock,
              nodes: task.numNodes,
              placeConfig: task.placeConfig,
            })
          ).map(({ offer }) => offer.provider)
        : [existing.place?.provider ?? []].flat();
    refuseMountsAnywhere(task, await Promise.all([...new Set(used)].map((place) => this.#context.provider(place))));
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
      // Its folder is the sign that a job may start: the driver waits for it.
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

  /** Sends a cluster on its way out. */
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
      this.#drivers.get(cluster.key)?.driver.leave(purge);
      return;
    }
  }

  /** A cluster has as many nodes as its first job wanted. */
  async #refuseMoreNodes({ name }: ClusterRecord, wanted: number): Promise<void> {
    const [first] = await this.#context.store.clusters.jobs(name);
    const nodes = first?.task.numNodes ?? 1;
    if (wanted <= nodes) return;
    const count = nodes === 1 ? '1 node' : `${nodes} nodes`;
    throw new SvcError('SVC_INVALID_TASK', `Cluster '${name}' has ${count}, and the task wants ${wanted} (num_nodes).`, {
      hint: 'Launch it on a cluster of its own, or write a smaller num_nodes.',
    });
  }

  /** A job whose files cannot be kept for other controllers never begins. */
  async #keepFiles({ key }: ClusterRecord, job: JobRecord, path: string): Promise<void> {
    try {
      await this.#files.save(key, keptName(job), path);
    } catch (error) {
      await this.#context.store.clusters.updateJob(job, { state: 'FAILED', endedAt: this.#context.clock.now() });
      throw error;
    }
  }

  /** One whose files are damaged has none. That is no reason to leave all others alone. */
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
