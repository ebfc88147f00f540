import { existsSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { placeName } from '../../domain/place-name.ts';
import { assertMachineId, type Provider } from '../../providers/provider.ts';
import { obtainMachine, type GivenMachine } from '../../provision/acquire-machine.ts';
import { destroyMachine, giveBack } from '../../provision/machine.ts';
import { machineNodes, stopNodes } from '../../provision/node-jobs.ts';
import { PlacementHistory } from '../../provision/placement-history.ts';
import { fileProvisionLog } from '../../provision/provision-log.ts';
import { describeStep, type SearchStep } from '../../provision/search-steps.ts';
import { messageOf } from '../../shared/errors.ts';
import { systemRandom } from '../../shared/random.ts';
import type { ClusterRecord, JobRecord } from '../../store/records.ts';
import type { Change } from '../../store/store.ts';
import type { DaemonContext } from '../daemon-context.ts';
import { clusterDeployment, type PublishedFiles } from '../deployments.ts';
import { serviceFiles } from '../service-files.ts';
import { findMachines, isClaimed, offerOf, type FoundMachine } from '../recorded-machines.ts';
import { lossOf } from '../service/machine-loss.ts';
import { placeRecord } from '../service/replica-launch.ts';
import { machineJobName, runClusterJob } from './cluster-job.ts';
import { clusterPaths } from './cluster-paths.ts';

const pollMs = 200;
const goneTimeoutMs = 300_000;
const killGraceMs = 10_000;
const retryMs = 2_000;

const inspectEveryMs = 5_000;

const ended = (job: JobRecord): boolean => job.endedAt !== null;

/** Drives one cluster through its life: gets the machine, runs its jobs, removes the machine. Whatever the records say, it does what is next. */
export class ClusterDriver {
  readonly #context: DaemonContext;
  #cluster: ClusterRecord;
  readonly #running = new Map<number, Promise<void>>();
  #purge = false;
  #watched: Provider | undefined;
  /** When the place is asked next whether the machine is still there, monotonic ms. */
  #inspectAt = 0;
  #work = new AbortController();
  readonly #deployment: PublishedFiles;
  readonly #history = new PlacementHistory({ random: systemRandom });
  /** Aborts with the process, at the latest. */
  #process = AbortSignal.abort();

  constructor(context: DaemonContext, cluster: ClusterRecord) {
    this.#context = context;
    this.#cluster = cluster;
    this.#deployment = clusterDeployment(clusterPaths(context.paths, cluster.key).dir, { ...context, ...cluster });
  }

  /** Settles when the cluster is gone or the signal aborted. */
  async run(signal: AbortSignal): Promise<void> {
    this.#process = signal;
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
    const log = fileProvisionLog(clusterPaths(paths, this.#cluster.key).launchLog, clock);
    const [first] = await store.clusters.jobs(this.#cluster.name);
    if (first === undefined) return;
    try {
      // A daemon before this one may have been given a machine and died before it could say so.
      const found = await this.#machineFromBefore(signal);
      const { resources } = first.task;
      const { provider, machineId } = await obtainMachine(
        {
          alternatives: resources,
          nodes: first.task.numNodes,
          placeConfig: first.task.placeConfig,
          places: () => this.#context.states(),
          history: this.#history,
          occupied: () => [],
          spec: ({ alternative }) => ({
            tags: {
              'svc-cluster': this.#cluster.name,
              ...(this.#context.host !== undefined && { 'svc-owner': this.#context.host.key }),
            },
            labels: {},
            ports: [],
            clients: [],
            diskSizeGb: resources.choices[alternative]?.diskSizeGb ?? 0,
            diskTier: resources.choices[alternative]?.diskTier,
            imageId: resources.choices[alternative]?.imageId,
            nodes: first.task.numNodes,
            volumes: first.task.volumes,
            placeConfig: first.task.placeConfig,
            role: 'replica',
          }),
          key: this.#cluster.machineKey,
          clock,
          background: this.#process,
          step: async (step) => {
            log(describeStep(step));
            await this.#recordStep(step, first.task.numNodes);
          },
        },
        found,
        signal,
      );
      await this.#note({ state: 'UP', machineId, reason: null }, `Machine ${machineId} of ${provider.name} is up.`);
    } catch (error) {
      if (signal.aborted) return;
      log(`Launching failed: ${messageOf(error)}`);
      await this.#note({ state: 'FAILED', reason: messageOf(error) }, `Launching failed: ${messageOf(error)}`);
    }
  }

  async #startJobs(signal: AbortSignal): Promise<void> {
    const [machine] = await this.#machines(signal);
    const loss = await this.#lossOf(machine, signal);
    if (machine === undefined || loss !== undefined) return this.#fail(loss ?? 'Its machine is gone.');
    for (const job of await this.#context.store.clusters.jobs(this.#cluster.name)) {
      if (ended(job) || this.#running.has(job.id)) continue;
      // Its files are still being copied.
      if (!existsSync(clusterPaths(this.#context.paths, this.#cluster.key).snapshot(job.id))) continue;
      const run = runClusterJob(this.#context, this.#cluster, job, machine.provider, machine.id, this.#deployment, signal);
      const done = run
        .catch((error: unknown) => this.#context.log.error({ err: error, job: job.id }, 'a job could not be followed'))
        .finally(() => this.#running.delete(job.id));
      this.#running.set(job.id, done);
    }
  }

  /** What its place says of its machine when that is gone; it is asked now and then, and as soon as it tells of changes or has no such machine. */
  async #lossOf(machine: FoundMachine | undefined, signal: AbortSignal): Promise<string | undefined> {
    const { clock } = this.#context;
    const { place, machineId } = this.#cluster;
    if (place === null || machineId === null) return undefined;
    const provider = machine?.provider ?? (await this.#context.provider(place.provider));
    if (this.#watched !== provider) {
      this.#watched = provider;
      provider.watch?.(() => (this.#inspectAt = 0), this.#process);
    }
    if (machine !== undefined && clock.monotonic() < this.#inspectAt) return undefined;
    this.#inspectAt = clock.monotonic() + inspectEveryMs;
    assertMachineId(machineId);
    const status = (await provider.inspect([machineId], { signal })).get(machineId);
    const loss = lossOf(status, `Its machine ${machineId} at ${placeName(place)}`);
    return loss?.type === 'gone' ? loss.reason : undefined;
  }

  /** Nothing on it goes on: its jobs end as well. */
  async #fail(reason: string): Promise<void> {
    this.leave(false);
    await Promise.all(this.#running.values());
    const { store, clock } = this.#context;
    for (const job of await store.clusters.jobs(this.#cluster.name))
      if (!ended(job)) await store.clusters.updateJob(job, { state: 'FAILED', endedAt: clock.now() });
    await this.#note({ state: 'FAILED', reason }, reason);
  }

  /** True when nothing is left. */
  async #remove(signal: AbortSignal): Promise<boolean> {
    const { store, clock, paths } = this.#context;
    const { name, key, state } = this.#cluster;
    // A job that is just being started must not come to life behind the removal.
    await Promise.all(this.#running.values());
    // A place that has not answered yet may still give a machine.
    if (this.#history.isBusy && !this.#purge) return false;
    try {
      await this.#removeMachine(signal);
      await this.#deployment.remove(signal);
    } catch (error) {
      if (!this.#purge || signal.aborted) throw error;
      this.#context.log.warn({ err: error, cluster: name }, 'a machine or bucket could not be removed; its cluster is dropped by force');
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
    await serviceFiles(store).remove(key);
    await rm(clusterPaths(paths, key).dir, { recursive: true, force: true });
    return true;
  }

  async #removeMachine(signal: AbortSignal): Promise<void> {
    const { store, clock, log } = this.#context;
    const [machine, ...surplus] = await this.#machines(signal);
    for (const { provider, id } of surplus) await destroyMachine(provider, id, clock, goneTimeoutMs, signal);
    if (machine === undefined) return;
    const living = (await store.clusters.jobs(this.#cluster.name)).filter((job) => !ended(job));
    try {
      const stop = async (job: JobRecord): Promise<void> => {
        const nodes = await machineNodes(machine.provider, machine.id, job.task.numNodes, signal);
        await stopNodes(nodes, machineJobName(job.id), { graceMs: killGraceMs, signal });
      };
      await Promise.all(living.map(stop));
    } catch (error) {
      // A machine that cannot be worked on any more is destroyed all the same.
      log.warn({ err: error, cluster: this.#cluster.name }, 'could not stop its jobs politely');
    }
    await destroyMachine(machine.provider, machine.id, clock, goneTimeoutMs, signal);
  }

  /** By tag rather than by id: a place may have accepted before the id was recorded. The recorded one is first. */
  async #machines(signal: AbortSignal): Promise<readonly FoundMachine[]> {
    const { name, machineKey: key } = this.#cluster;
    const all = await findMachines(this.#context, { ...this.#cluster, key }, { 'svc-cluster': name }, signal);
    const own = all.filter(({ tags }) => tags['svc-key']?.startsWith(key));
    return own.toSorted((a, b) => Number(isClaimed(b, { ...this.#cluster, key })) - Number(isClaimed(a, { ...this.#cluster, key })));
  }

  /** What a daemon before this one was given and could not record any more; what it was given beside that is given back. */
  async #machineFromBefore(signal: AbortSignal): Promise<GivenMachine | undefined> {
    const { place, machineKey: key } = this.#cluster;
    const { clock } = this.#context;
    const machines = await this.#machines(signal);
    const kept = machines.find((machine) => isClaimed(machine, { ...this.#cluster, key }));
    for (const { provider, id } of machines.filter((machine) => machine !== kept))
      this.#history.keepBusy(giveBack(provider, { id }, clock, signal));
    if (kept === undefined || place === null) return undefined;
    return { provider: kept.provider, offer: offerOf(place), machineId: kept.id, askedAt: clock.monotonic() };
  }

  async #recordStep(step: SearchStep, nodes: number): Promise<void> {
    if (step.type === 'asking') return this.#note({ place: placeRecord(step.offer, nodes), machineId: null, reason: null });
    if (step.type === 'given') return this.#note({ place: placeRecord(step.offer, nodes), machineId: step.machineId, reason: null });
    if (step.type === 'surplus' || step.type === 'detail') return undefined;
    return this.#note({ reason: describeStep(step), ...(step.type === 'lost' && { place: null, machineId: null }) });
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
