import { existsSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { locationName } from '../../domain/location-name.ts';
import { assertMachineId, type Provider } from '../../providers/provider.ts';
import { obtainMachine, type GivenMachine } from '../../provision/acquire-machine.ts';
import { taskMachineSpec } from '../../provision/machine-spec.ts';
import { machineNodes } from '../../provision/node-jobs.ts';
import { PlacementHistory } from '../../provision/placement-history.ts';
import { fileProvisionLog } from '../../provision/provision-log.ts';
import {
  claimChange,
  findMachines,
  isClaimed,
  lossOf,
  recoverMachine,
  removeMachine,
  type FoundMachine,
} from '../../provision/recorded-machines.ts';
import { describeStep, type SearchStep } from '../../provision/search-steps.ts';
import { messageOf } from '../../shared/errors.ts';
import { systemRandom } from '../../shared/random.ts';
import type { Change, ClusterRecord, JobRecord } from '../../domain/records.ts';
import type { DaemonContext } from '../daemon-context.ts';
import { clusterDeployment, type PublishedFiles } from '../deploy/deployments.ts';
import { serviceFiles } from '../deploy/service-files.ts';
import { clusterKeyTag } from '../leftovers.ts';
import { machineJobName, runClusterJob } from './cluster-job.ts';
import { type ClusterPort, ClusterPorts } from './cluster-ports.ts';
import { clusterPaths } from './cluster-paths.ts';

const pollMs = 200;
const retryMs = 2_000;

const inspectEveryMs = 5_000;

/** Without probes, a machine silent for this long counts as lost, ms. Kubernetes evicts pods after the same time. */
const silentLimitMs = 300_000;

const ended = (job: JobRecord): boolean => job.endedAt !== null;

/** Drives one cluster: acquires the machine, runs its jobs, removes the machine. The records determine each step. */
export class ClusterDriver {
  readonly #context: DaemonContext;
  #cluster: ClusterRecord;
  readonly #running = new Map<number, Promise<void>>();
  #purge = false;
  #watched: Provider | undefined;
  /** When to ask the provider next whether the machine still exists, monotonic ms. */
  #inspectAt = 0;
  /** Since when the provider cannot report the machine's state, monotonic ms. */
  #silentSince: number | undefined;
  #work = new AbortController();
  readonly #deployment: PublishedFiles;
  readonly #history = new PlacementHistory({ random: systemRandom });
  readonly #ports: ClusterPorts;
  /** Aborts with the process at the latest. */
  #process = AbortSignal.abort();

  constructor(context: DaemonContext, cluster: ClusterRecord) {
    this.#context = context;
    this.#cluster = cluster;
    this.#ports = new ClusterPorts({ ...context, key: cluster.key });
    this.#deployment = clusterDeployment(clusterPaths(context.paths, cluster.key).dir, { ...context, ...cluster });
  }

  /** Where the ports that its jobs name are reached. */
  get ports(): readonly ClusterPort[] {
    return this.#ports.all;
  }

  /** Settles when the cluster is gone or the signal aborted. */
  async run(signal: AbortSignal): Promise<void> {
    try {
      await this.#run(signal);
    } finally {
      this.#ports.close();
    }
  }

  async #run(signal: AbortSignal): Promise<void> {
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

  /** Interrupts the current work to terminate the cluster. `purge`: even when its machine cannot be removed. */
  interrupt(purge: boolean): void {
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
      // An earlier daemon may have received a machine and died before it recorded it.
      const found = await this.#recoverMachine(signal);
      const { resources } = first.task;
      const { provider, machineId } = await obtainMachine(
        {
          alternatives: resources,
          nodes: first.task.numNodes,
          providerConfig: first.task.providerConfig,
          providers: () => this.#context.states(),
          history: this.#history,
          occupied: () => [],
          spec: ({ alternative }) => ({
            ...taskMachineSpec(first.task, resources.choices[alternative]),
            // Ports and labels of resources apply to services only.
            labels: {},
            ports: [],
            followsPort: false,
            clients: [],
            tags: {
              'svc-cluster': this.#cluster.name,
              [clusterKeyTag]: this.#cluster.key,
              ...(this.#context.controllerHost !== undefined && { 'svc-owner': this.#context.controllerHost.key }),
            },
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
      await this.#patch({ state: 'UP', machineId, reason: null }, `Machine ${machineId} of ${provider.name} is up.`);
    } catch (error) {
      if (signal.aborted) return;
      log(`Launching failed: ${messageOf(error)}`);
      await this.#patch({ state: 'FAILED', reason: messageOf(error) }, `Launching failed: ${messageOf(error)}`);
    }
  }

  async #startJobs(signal: AbortSignal): Promise<void> {
    const [machine] = await this.#machines(signal);
    const loss = await this.#lossOf(machine, signal);
    if (machine === undefined || loss !== undefined) return this.#fail(loss ?? 'Its machine is gone.');
    for (const job of await this.#context.store.clusters.jobs(this.#cluster.name)) {
      if (ended(job) || this.#running.has(job.id)) continue;
      // The job's files are still being copied.
      if (!existsSync(clusterPaths(this.#context.paths, this.#cluster.key).snapshot(job.id))) continue;
      const onError = (error: unknown): void =>
        this.#context.log.warn({ err: error, job: job.id }, 'the ports of a job could not be opened');
      const cluster = this.#cluster;
      const run = (): Promise<void> => runClusterJob(this.#context, cluster, job, machine.provider, machine.id, this.#deployment, signal);
      // One after the other: two jobs may name the same port.
      await this.#openPorts(job, machine, signal).catch(onError);
      const done = run()
        .catch((error: unknown) => this.#context.log.error({ err: error, job: job.id }, 'a job could not be followed'))
        .finally(() => this.#running.delete(job.id));
      this.#running.set(job.id, done);
    }
  }

  async #openPorts({ id, task, state }: JobRecord, { provider, id: machineId }: FoundMachine, signal: AbortSignal): Promise<void> {
    const ports = [...new Set(task.resources.choices.flatMap((choice) => choice.ports))];
    if (ports.length === 0) return;
    const [head] = await machineNodes(provider, machineId, task.numNodes, signal);
    if (head === undefined) return;
    await this.#ports.open(ports, head.remote);
    if (state !== 'PENDING') return;
    const { paths, clock, controllerHost } = this.#context;
    const log = fileProvisionLog(clusterPaths(paths, this.#cluster.key).provisionLog(id), clock);
    const where = controllerHost === undefined ? '' : " of the controller's machine";
    for (const { port, address } of this.#ports.all) if (ports.includes(port)) log(`Port ${port} is reached at ${address}${where}`);
  }

  /** Why the machine is gone. Asks periodically, and at once when the provider reports changes or lacks the machine. */
  async #lossOf(machine: FoundMachine | undefined, signal: AbortSignal): Promise<string | undefined> {
    const { clock } = this.#context;
    const { offer, machineId } = this.#cluster;
    if (offer === null || machineId === null) return undefined;
    const provider = machine?.provider ?? (await this.#context.provider(offer.provider));
    if (this.#watched !== provider) {
      this.#watched = provider;
      provider.watch?.(() => (this.#inspectAt = 0), this.#process);
    }
    if (machine !== undefined && clock.monotonic() < this.#inspectAt) return undefined;
    this.#inspectAt = clock.monotonic() + inspectEveryMs;
    assertMachineId(machineId);
    const status = (await provider.inspect([machineId], { signal })).get(machineId);
    const loss = lossOf(status, `Its machine ${machineId} at ${locationName(offer)}`);
    if (loss?.type === 'gone') return loss.reason;
    if (loss?.type !== 'silent') {
      this.#silentSince = undefined;
      return undefined;
    }
    this.#silentSince ??= clock.monotonic();
    return !loss.isWidespread && clock.monotonic() - this.#silentSince >= silentLimitMs ? loss.reason : undefined;
  }

  /** Nothing continues on a failed machine: its jobs end as well. */
  async #fail(reason: string): Promise<void> {
    this.interrupt(false);
    await Promise.all(this.#running.values());
    this.#ports.close();
    const { store, clock } = this.#context;
    for (const job of await store.clusters.jobs(this.#cluster.name))
      if (!ended(job)) await store.clusters.updateJob(job, { state: 'FAILED', endedAt: clock.now() });
    await this.#patch({ state: 'FAILED', reason }, reason);
  }

  /** Returns true when nothing is left. */
  async #remove(signal: AbortSignal): Promise<boolean> {
    const { store, clock, paths } = this.#context;
    const { name, key, state } = this.#cluster;
    // A job that is being started must not come up after the removal.
    await Promise.all(this.#running.values());
    this.#ports.close();
    // A provider with an open ask may still return a machine.
    if (this.#history.isBusy && !this.#purge) return false;
    try {
      await this.#removeMachines(signal);
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

  async #removeMachines(signal: AbortSignal): Promise<void> {
    const { store, clock, log } = this.#context;
    const onUnstopped = (error: unknown): void => log.warn({ err: error, cluster: this.#cluster.name }, 'could not stop its jobs politely');
    const [machine, ...surplus] = await this.#machines(signal);
    for (const one of surplus) await removeMachine(one, { jobs: () => [], onUnstopped, clock }, signal);
    if (machine === undefined) return;
    const living = (await store.clusters.jobs(this.#cluster.name)).filter((job) => !ended(job));
    const jobs = living.map(({ id, task }) => ({ name: machineJobName(id), numNodes: task.numNodes }));
    await removeMachine(machine, { jobs: () => jobs, onUnstopped, clock }, signal);
  }

  /** Searches by tag: a provider may have accepted before the id was recorded. The recorded machine comes first. */
  async #machines(signal: AbortSignal): Promise<readonly FoundMachine[]> {
    const { name, machineKey: key } = this.#cluster;
    const all = await findMachines(this.#context, { ...this.#cluster, key }, { 'svc-cluster': name }, signal);
    const own = all.filter(({ tags }) => tags['svc-key']?.startsWith(key));
    return own.toSorted((a, b) => Number(isClaimed(b, { ...this.#cluster, key })) - Number(isClaimed(a, { ...this.#cluster, key })));
  }

  /** The machine that an earlier daemon received and could not record. Surplus machines are terminated. */
  async #recoverMachine(signal: AbortSignal): Promise<GivenMachine | undefined> {
    const claim = { ...this.#cluster, key: this.#cluster.machineKey };
    const deps = { history: this.#history, clock: this.#context.clock, background: signal };
    return recoverMachine(await this.#machines(signal), claim, deps);
  }

  async #recordStep(step: SearchStep, nodes: number): Promise<void> {
    if (step.type !== 'surplus' && step.type !== 'detail') await this.#patch(claimChange(step, nodes));
  }

  async #patch(change: Change<ClusterRecord>, message?: string): Promise<void> {
    const { store, clock } = this.#context;
    for (;;) {
      const before = this.#cluster;
      // A terminating cluster only continues its removal.
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
