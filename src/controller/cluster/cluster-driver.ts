import { existsSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { stopJob } from '../../provision/job.ts';
import { acquireMachine, destroyMachine, PlacementHistory, placeName, waitUntilRunning } from '../../provision/machine.ts';
import { fileProvisionLog } from '../../provision/provision-log.ts';
import type { MachineId, Provider } from '../../providers/provider.ts';
import { messageOf } from '../../shared/errors.ts';
import type { ClusterRecord, JobRecord } from '../../store/records.ts';
import type { Change } from '../../store/store.ts';
import type { DaemonContext } from '../daemon-context.ts';
import { placeRecord } from '../service/replica-launch.ts';
import { machineJobName, runClusterJob } from './cluster-job.ts';
import { clusterPaths } from './cluster-paths.ts';

const pollMs = 200;
const goneTimeoutMs = 300_000;
const killGraceMs = 10_000;
const retryMs = 2_000;

const ended = (job: JobRecord): boolean => job.endedAt !== null;

/** Drives one cluster through its life: gets the machine, runs its jobs, removes the machine. Whatever the records say, it does what is next. */
export class ClusterDriver {
  readonly #context: DaemonContext;
  #cluster: ClusterRecord;
  readonly #running = new Map<number, Promise<void>>();
  #purge = false;
  #work = new AbortController();

  constructor(context: DaemonContext, cluster: ClusterRecord) {
    this.#context = context;
    this.#cluster = cluster;
  }

  /** Settles when the cluster is gone or the signal aborted. */
  async run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      const both = AbortSignal.any([signal, this.#work.signal]);
      try {
        const cluster = await this.#context.store.clusters.get(this.#cluster.name);
        if (cluster === undefined || cluster.key !== this.#cluster.key) return;
        this.#cluster = cluster;
        if (cluster.state === 'INIT') await this.#launch(both);
        else if (cluster.state === 'UP') await this.#startJobs(both);
        else if (cluster.state === 'SHUTTING_DOWN' && (await this.#remove(signal))) return;
      } catch (error) {
        if (!both.aborted) {
          this.#context.log.error({ err: error, cluster: this.#cluster.name }, 'driving a cluster failed');
          await this.#context.clock.sleep(retryMs, signal);
        }
      }
      await this.#context.clock.sleep(pollMs, signal);
    }
  }

  /** Interrupts what is being done, because the cluster is to go away; by force also when its machine cannot be removed. */
  leave(purge: boolean): void {
    this.#purge ||= purge;
    this.#work.abort();
    this.#work = new AbortController();
  }

  async #launch(signal: AbortSignal): Promise<void> {
    const { store, clock, paths } = this.#context;
    const log = fileProvisionLog(clusterPaths(paths, this.#cluster.key).provisionLog, clock);
    const [first] = await store.clusters.jobs(this.#cluster.name);
    if (first === undefined) return;
    try {
      // A daemon before this one may have been given a machine and died before it could say so.
      const given = await this.#machine();
      if (given !== undefined) {
        await waitUntilRunning(given.provider, given.id, clock, signal);
        await this.#note({ state: 'UP', machineId: given.id }, `Going on with machine ${given.id}.`);
        return;
      }
      const acquired = await acquireMachine(
        {
          alternatives: first.task.resources,
          providers: await this.#context.providers(),
          history: new PlacementHistory(),
          occupied: () => [],
          spec: {
            tags: { 'svc-cluster': this.#cluster.name, 'svc-key': this.#cluster.machineKey },
            labels: {},
            ports: [],
            clients: [],
            diskSizeGb: first.task.resources.choices[0]?.diskSizeGb ?? 0,
            diskTier: first.task.resources.choices[0]?.diskTier,
            imageId: first.task.resources.choices[0]?.imageId,
            role: 'replica',
          },
          key: this.#cluster.machineKey,
          clock,
          log,
          intend: (offer) => this.#note({ place: placeRecord(offer), reason: null }),
          refused: (offer, reason) => this.#note({ place: null, reason: `${placeName(offer)} refused: ${reason}` }),
          waiting: (_until, reason) => this.#note({ reason }),
        },
        signal,
      );
      await waitUntilRunning(acquired.provider, acquired.machineId, clock, signal);
      await this.#note({ state: 'UP', machineId: acquired.machineId }, `${placeName(acquired.offer)} gave machine ${acquired.machineId}.`);
    } catch (error) {
      if (signal.aborted) return;
      log(`Launching failed: ${messageOf(error)}`);
      await this.#note({ state: 'FAILED', reason: messageOf(error) }, `Launching failed: ${messageOf(error)}`);
    }
  }

  async #startJobs(signal: AbortSignal): Promise<void> {
    const machine = await this.#machine();
    if (machine === undefined) {
      await this.#note({ state: 'FAILED', reason: 'Its machine is gone.' }, 'Its machine is gone.');
      return;
    }
    for (const job of await this.#context.store.clusters.jobs(this.#cluster.name)) {
      if (ended(job) || this.#running.has(job.id)) continue;
      // Its files are still being copied.
      if (!existsSync(clusterPaths(this.#context.paths, this.#cluster.key).snapshot(job.id))) continue;
      const run = runClusterJob(this.#context, this.#cluster, job, machine.provider, machine.id, signal);
      const done = run
        .catch((error: unknown) => this.#context.log.error({ err: error, job: job.id }, 'a job could not be followed'))
        .finally(() => this.#running.delete(job.id));
      this.#running.set(job.id, done);
    }
  }

  /** True when nothing is left. */
  async #remove(signal: AbortSignal): Promise<boolean> {
    const { store, clock, paths } = this.#context;
    const { name, key, state } = this.#cluster;
    // A job that is just being started must not come to life behind the removal.
    await Promise.all(this.#running.values());
    try {
      await this.#removeMachine(signal);
    } catch (error) {
      if (!this.#purge || signal.aborted) throw error;
      this.#context.log.warn({ err: error, cluster: name }, 'a machine could not be removed; its cluster is dropped by force');
    }
    await store.clusters.remove(name, key, {
      at: clock.now(),
      subject: name,
      subjectKey: key,
      replicaId: null,
      from: state,
      to: null,
      cause: 'down',
      message: 'Nothing is left of it.',
    });
    await rm(clusterPaths(paths, key).dir, { recursive: true, force: true });
    return true;
  }

  async #removeMachine(signal: AbortSignal): Promise<void> {
    const { store, clock, log } = this.#context;
    const machine = await this.#machine();
    if (machine === undefined) return;
    const remote = machine.provider.remote(machine.id);
    const living = (await store.clusters.jobs(this.#cluster.name)).filter((job) => !ended(job));
    try {
      await Promise.all(living.map((job) => stopJob(remote, machineJobName(job.id), { graceMs: killGraceMs, signal })));
    } catch (error) {
      // A machine that cannot be worked on any more is destroyed all the same.
      log.warn({ err: error, cluster: this.#cluster.name }, 'could not stop its jobs politely');
    }
    await destroyMachine(machine.provider, machine.id, clock, goneTimeoutMs, signal);
  }

  /** By key rather than by id: the place may have accepted before the id was recorded. */
  async #machine(): Promise<{ readonly provider: Provider; readonly id: MachineId } | undefined> {
    const { place, machineKey } = this.#cluster;
    if (place === null) return undefined;
    const provider = await this.#context.provider(place.provider);
    const [found] = await provider.list({ 'svc-key': machineKey }, {});
    return found === undefined ? undefined : { provider, id: found.id };
  }

  async #note(change: Change<ClusterRecord>, message?: string): Promise<void> {
    const { store, clock } = this.#context;
    for (;;) {
      const before = this.#cluster;
      // Once it is going down, only removal goes on.
      if (before.state === 'SHUTTING_DOWN') return;
      const to = change.state ?? null;
      const event =
        message === undefined
          ? undefined
          : {
              at: clock.now(),
              subject: before.name,
              subjectKey: before.key,
              replicaId: null,
              from: before.state,
              to,
              cause: 'cluster',
              message,
            };
      const written = await store.clusters.update(before, change, event);
      const fresh = written ?? (await store.clusters.get(before.name));
      if (fresh === undefined || fresh.key !== before.key) return;
      this.#cluster = fresh;
      if (written !== undefined) return;
    }
  }
}
