import type { SuspectReason } from '../../domain/balancer-link.ts';
import { endpointCandidates, keptEnded, type Decision, type Launch, type World } from '../../domain/decision.ts';
import { expectedReplica, measuredStartSeconds } from '../../domain/expected-replica.ts';
import { reconcile } from '../../domain/reconcile.ts';
import { provenVersionOf } from '../../domain/rollout.ts';
import { newReplica, type NewEvent, type ReplicaRecord, type ServiceRecord, subjectEvent } from '../../domain/records.ts';
import { nextMachineReport, withoutPastSilence, type MachineReport } from '../../domain/replica/replica-report.ts';
import { isEnded } from '../../domain/replica/replica-state.ts';
import type { Task } from '../../domain/task.ts';
import type { EndpointInput } from './endpoint-publisher.ts';
import { delayMs, type Backoff } from '../../shared/backoff.ts';
import type { CancelTimer } from '../../shared/clock.ts';
import type { Loop } from '../../shared/loop.ts';
import { randomHex } from '../../shared/hex.ts';
import { removeReplicaLogs } from '../kept-log.ts';
import type { Committed } from '../../store/store.ts';
import { checkReadyReplicas } from './replica-program.ts';
import type { BalancerView } from './balancer-client.ts';
import { CanaryWatch } from './canary-watch.ts';
import { LoadMeter } from './load-meter.ts';
import type { SeenMachine } from './machine-watch.ts';
import { removeOrphans } from './orphan-sweep.ts';
import { ReplicaDriver } from './replica-driver.ts';
import { ReplicaHandle } from './replica-handle.ts';
import type { ServiceContext } from './service-context.ts';

/** A pass runs after each change, and at least this often, ms. */
const passEveryMs = 1_000;

/** Backoff of searches for what providers still have of a removed service. */
const searchBackoff: Backoff = { firstMs: 1_000, longestMs: 60_000 };

/** Brings a service to its desired state in passes: load, decide, commit, publish. Executors do the rest. */
export class Reconciler implements Loop {
  readonly name = 'reconcile';
  readonly everyMs = passEveryMs;
  readonly #context: ServiceContext;
  readonly #balancer: { readonly view: BalancerView };
  /** Called once when the service is gone and nothing is left to do. */
  readonly #finished: () => void;
  readonly #handles = new Map<number, ReplicaHandle>();
  readonly #drivers = new Map<number, ReplicaDriver>();
  /** Ids of replicas that ended while this process drove them. */
  readonly #ended = new Set<number>();
  /** Ids of replicas whose loss is recorded for their zone. */
  readonly #lost = new Set<number>();
  readonly #versions = new Map<number, Task>();
  readonly #load: LoadMeter;
  readonly #canary: CanaryWatch;
  /** The replicas of the last pass, with the ended ones, of which there are no handles. */
  #listed: readonly ReplicaRecord[] = [];
  /** As it was last read or written. */
  #service: ServiceRecord | undefined;
  #isInventoryKnown = false;
  #leftovers: World['leftovers'] = 'unknown';
  /** Consecutive failed searches, and when to search again (monotonic ms). */
  #searches = { failed: 0, nextAt: Number.NEGATIVE_INFINITY };
  /** The last requested form of the service's removal. */
  #removal = '';
  #cancelWake: CancelTimer = () => undefined;

  constructor(context: ServiceContext, balancer: { readonly view: BalancerView }, finished: () => void) {
    this.#context = context;
    this.#balancer = balancer;
    this.#finished = finished;
    this.#load = new LoadMeter(context.clock);
    this.#canary = new CanaryWatch(context.clock);
  }

  /** `count` requests reached the balancer; `queued` requests are in the request queue. */
  arrivals(count: number, queued: number): void {
    this.#load.arrivals(count, { inFlight: this.#balancer.view.inFlight, queued });
    // While all replicas sleep, or there is none, a request triggers a decision at once, even one from before this process started.
    if ((count > 0 || queued > 0) && [...this.#drivers.values()].every(({ handle }) => handle.state === 'SLEEPING')) {
      this.#load.decideNow();
      this.#context.wake();
    }
  }

  suspect(replicaId: number, reason: SuspectReason): void {
    this.#drivers.get(replicaId)?.suspect(reason);
  }

  async machineSeen({ replicaId: id, loss }: SeenMachine): Promise<void> {
    const { reports, clock } = this.#context;
    const driver = this.#drivers.get(id);
    if (loss?.type === 'gone') {
      if (driver !== undefined && loss.cause === 'preempted') await this.#reclaimed(driver);
      if (driver !== undefined) reports.report(id, { isGone: true, end: { cause: loss.cause, reason: loss.reason, killed: true } });
      return this.#context.wake();
    }
    const before = reports.of(id).machine;
    const machine = nextMachineReport(before, loss?.type === 'silent' ? loss : undefined, clock.monotonic());
    reports.report(id, { machine });
    await this.#silenceChanged(driver, before, machine);
    if (loss?.type === 'doubtful' && driver !== undefined && reports.of(id).recommendation === undefined) {
      reports.report(id, { recommendation: loss.reason });
      await driver.handle.patch({}, { cause: 'rebalance-recommendation', message: loss.reason });
      this.#context.wake();
    }
    if (loss?.type === 'leaving' && driver !== undefined && reports.of(id).notice === undefined) {
      const noticedAt = await this.#reclaimed(driver);
      reports.report(id, { notice: { noticedAt: noticedAt ?? clock.now(), reclaimedAt: loss.at, reason: loss.reason } });
      if (noticedAt === undefined) await driver.handle.patch({}, { cause: 'interruption-notice', message: loss.reason });
      this.#context.wake();
    }
  }

  /**
   * Records the loss for the zone of a machine, once: the provider repeats its notice at each poll, and the end follows.
   * Returns when the notice was recorded, also by an earlier process; undefined when it was not.
   */
  async #reclaimed({ handle: { id, record } }: ReplicaDriver): Promise<number | undefined> {
    const { store, name, key, zones } = this.#context;
    if (this.#lost.has(id)) return undefined;
    const events = await store.events.list({ subject: name, subjectKey: key });
    const notice = events.find(({ replicaId, cause }) => replicaId === id && cause === 'interruption-notice');
    this.#lost.add(id);
    if (notice === undefined && record.offer !== null) zones.lost(record.offer);
    return notice?.at;
  }

  async #silenceChanged(driver: ReplicaDriver | undefined, before: MachineReport, after: MachineReport): Promise<void> {
    if (before.type !== 'silent' && after.type !== 'silent') return;
    const isSame = before.type === 'silent' && after.type === 'silent' && before.isEnding === after.isEnding;
    if (isSame && before.isWidespread === after.isWidespread) return;
    // The replica's answer decides, so it is probed now.
    driver?.probeNow();
    if (after.type === 'back')
      // Probes that failed while the machine was silent do not count.
      await driver?.handle.patch({ firstProbeFailureAt: null }, { cause: 'machine-responsive', message: 'Its machine reports again.' });
    else if (after.type === 'silent' && before.type !== 'silent')
      await driver?.handle.patch({}, { cause: 'machine-silent', message: after.reason });
    this.#context.wake();
  }

  /** Every provider with machines has answered or failed once. */
  machinesAsked(): void {
    this.#isInventoryKnown = true;
    this.#context.wake();
  }

  /**
   * The replicas of the last pass with their newest records. Those that a pass adds are missing until the next pass: only
   * that one starts their drivers, so they have neither an offer nor a machine before it.
   */
  get replicas(): readonly ReplicaRecord[] {
    return this.#newest(this.#listed);
  }

  /** The price limit of the service's version, US dollars per hour. */
  get limitUsd(): number | undefined {
    return this.#service && this.#versions.get(this.#service.version)?.service?.maxHourlyCost;
  }

  /** The records as this process last wrote them; those without a handle as they were listed. */
  #newest(listed: readonly ReplicaRecord[]): readonly ReplicaRecord[] {
    return listed.map((record) => this.#handles.get(record.id)?.record ?? record);
  }

  /** The current input of the endpoint set. */
  endpointInput(): EndpointInput {
    const replicas = [...this.#handles.values()].map(({ record }) => record).toSorted((a, b) => a.id - b.id);
    return {
      candidates: endpointCandidates({ replicas, reports: this.#context.reports.all, versions: this.#versions }),
      service: this.#service,
      expected: expectedReplica(replicas, measuredStartSeconds(this.#listed)),
    };
  }

  /** Runs after a start. Ready replicas serve from the first endpoint set on: a new balancer knows none. */
  async adopt(): Promise<void> {
    const { store, name, key, endpoint } = this.#context;
    const replicas = await store.replicas.list(name);
    // Read last: while the service's record exists, its list of replicas was complete.
    this.#service = await store.services.get(name, key);
    // A database without this service replaced the one that it was started for. The balancer keeps its endpoint set:
    // the replicas still serve.
    if (this.#service === undefined) return this.#finished();
    await this.#loadVersions(replicas.filter(({ state }) => !isEnded(state)).map(({ version }) => version));
    this.#listed = replicas;
    this.#trackHandles(replicas);
    await this.#recallRecommendations();
    endpoint.refresh();
    await checkReadyReplicas(this.#context, [...this.#handles.values()]);
  }

  /**
   * Reports rebalance recommendations of an earlier process again. A provider may take a minute to repeat one; meanwhile
   * the replacement would end as surplus.
   */
  async #recallRecommendations(): Promise<void> {
    const { store, name, key, reports } = this.#context;
    if (![...this.#handles.values()].some(({ record }) => record.offer?.spot === true)) return;
    for (const { replicaId, cause, message } of await store.events.list({ subject: name, subjectKey: key }))
      if (cause === 'rebalance-recommendation' && replicaId !== null && this.#handles.has(replicaId))
        reports.report(replicaId, { recommendation: message });
  }

  async tick(signal: AbortSignal): Promise<void> {
    const { store, name, key, clock } = this.#context;
    // The order matters: a replica added after the service was read changes the service, and the commit is refused.
    const service = await store.services.get(name, key);
    this.#service = service;
    if (service === undefined) return this.#finished();
    const replicas = await store.replicas.list(name);
    this.#listed = replicas;
    await this.#loadVersions([
      service.version,
      provenVersionOf(service),
      ...replicas.filter(({ state }) => !isEnded(state)).map(({ version }) => version),
    ]);
    this.#drive(replicas, signal);
    const { retry } = service.memory;
    if (retry === 'all' || retry === 'early') return this.#forgetRefusals(retry);
    this.#hastenRemoval(service);
    this.#reportAnswers();
    const decision = reconcile(this.#world(service, replicas));
    if (!(await this.#commit(service, decision))) return this.#context.wake();
    if (decision.nextLoadMs !== undefined) this.#load.decided(decision.nextLoadMs);
    this.#cancelWake();
    if (decision.wakeAt !== undefined) this.#cancelWake = clock.after(decision.wakeAt - clock.now(), () => this.#context.wake());
    if (decision.prune) await this.#prune();
    if (decision.removal !== undefined) await this.#remove(service, decision.removal, signal);
    else this.#leftovers = 'unknown';
  }

  /** Whether a probe waits too long depends on the time, so each pass reports it. */
  #reportAnswers(): void {
    const { reports } = this.#context;
    for (const [id, { answers, handle }] of this.#drivers)
      reports.report(id, { answers, machine: withoutPastSilence({ ...reports.of(id), answers }, handle.state) });
  }

  #world(service: ServiceRecord, listed: readonly ReplicaRecord[]): World {
    const { clock, reports } = this.#context;
    const replicas = this.#newest(listed);
    return {
      now: clock.now(),
      monotonic: clock.monotonic(),
      service,
      versions: this.#versions,
      replicas,
      reports: reports.all,
      load: this.#load.report(this.#balancer.view, service.memory.autoscaler !== null),
      inFlight: this.#balancer.view.inFlight,
      broken: this.#balancer.view.broken,
      isInventoryKnown: this.#isInventoryKnown,
      ...this.#canary.compare(service, replicas, this.#balancer.view.outcomes),
      zoneHistories: this.#context.zones.histories,
      leftovers: this.#leftovers,
    };
  }

  /** Versions never change, so each is read once. Replicas of an unreadable version keep serving. */
  async #loadVersions(versions: readonly number[]): Promise<void> {
    for (const version of new Set(versions)) {
      // 0: no version was ever ready.
      if (version === 0 || this.#versions.has(version)) continue;
      try {
        this.#versions.set(version, await this.#context.task(version));
      } catch (error) {
        this.#context.log.error({ err: error, version }, 'a version of the service cannot be read');
      }
    }
  }

  #trackHandles(replicas: readonly ReplicaRecord[]): void {
    // The list may be older than the end of a replica.
    for (const record of replicas)
      if (!this.#handles.has(record.id) && !isEnded(record.state) && !this.#ended.has(record.id))
        this.#handles.set(record.id, new ReplicaHandle(this.#context, record));
    this.#takeOver(replicas, 'refresh');
  }

  /** Drivers act on these records, so the endpoint set follows at once, even when no later commit succeeds. */
  #takeOver(records: readonly ReplicaRecord[], how: 'refresh' | 'reset'): void {
    if (records.filter((record) => this.#handles.get(record.id)?.[how](record)).length > 0) this.#context.endpoint.refresh();
  }

  #drive(replicas: readonly ReplicaRecord[], signal: AbortSignal): void {
    this.#trackHandles(replicas);
    for (const [id, handle] of this.#handles) if (!this.#drivers.has(id)) this.#start(id, handle, signal);
    for (const driver of this.#drivers.values()) driver.obeyRecord();
  }

  #start(id: number, handle: ReplicaHandle, signal: AbortSignal): void {
    const driver = new ReplicaDriver(this.#context, handle, () => this.#balancer.view);
    this.#drivers.set(id, driver);
    const forget = (): void => {
      // When this process ends, its replicas keep serving and stay in the endpoint set.
      if (signal.aborted) return;
      this.#drivers.delete(id);
      // The next pass starts another driver.
      if (!isEnded(handle.state)) return;
      this.#ended.add(id);
      this.#lost.delete(id);
      this.#handles.delete(id);
      this.#context.reports.forget(id);
    };
    const failed = (error: unknown): void => this.#context.log.error({ err: error }, 'a replica could not be driven on');
    void driver.run(signal).catch(failed).then(forget);
  }

  /** Allows asking providers again at once. The mark is removed last: after a crash before that, this repeats. */
  async #forgetRefusals(which: 'all' | 'early'): Promise<void> {
    this.#context.history.forget(which);
    await this.#context.changeService(({ memory }) => ({ memory: { ...memory, retry: undefined } }));
    this.#context.wake();
  }

  /** A removal must not wait for a next attempt that is minutes away. */
  #hastenRemoval({ desired, purge }: ServiceRecord): void {
    const removal = desired === 'down' ? `${desired} ${purge}` : '';
    if (this.#removal === removal) return;
    this.#removal = removal;
    this.#searches = { failed: 0, nextAt: Number.NEGATIVE_INFINITY };
    // A search from before the last request says nothing about the present.
    this.#leftovers = 'unknown';
    for (const driver of this.#drivers.values()) driver.retryNow();
  }

  /** Writes the decision in one transaction. Returns false when a record that it rests on has changed meanwhile. */
  async #commit(service: ServiceRecord, decision: Decision): Promise<boolean> {
    const { service: change, events, stop, launch, endpoints, expected } = decision;
    const changed = [...decision.change, ...stop];
    const { store, endpoint } = this.#context;
    if (Object.keys(change).length + events.length + changed.length + launch.length === 0) {
      endpoint.publish(endpoints, expected);
      return true;
    }
    const added = launch.map((one, index) => this.#newReplica(service, one, service.nextReplicaId + index));
    let committed: Committed | undefined;
    try {
      committed = await store.services.commit(service, { change, events, changed, added });
    } catch (error) {
      this.#refuse(decision);
      throw error;
    }
    if (committed === undefined) {
      await this.#readAgain(decision);
      return false;
    }
    this.#service = committed.service;
    this.#trackHandles(committed.replicas);
    for (const { replica } of changed) this.#drivers.get(replica.id)?.obeyRecord();
    // Records may have changed during the commit, so the set is computed again.
    endpoint.refresh();
    this.#context.wake();
    return true;
  }

  /** Runs when the decision may not have been written. An ended replica may have recovered by the next pass. */
  #refuse({ stop }: Decision): void {
    for (const { replica } of stop) {
      this.#context.reports.withdrawEnd(replica.id);
      this.#drivers.get(replica.id)?.refuseEnd();
    }
  }

  /** Runs when a record that the decision changes was outdated. */
  async #readAgain({ change, stop }: Decision): Promise<void> {
    const decided = new Map([...change, ...stop].map(({ replica }) => [replica.id, replica.revision]));
    if (decided.size === 0) return;
    const listed = await this.#context.store.replicas.list(this.#context.name);
    // The list may be older than a record that its driver wrote meanwhile.
    const fresh = listed.filter(({ id }) => decided.has(id) && this.#handles.get(id)?.record.revision === decided.get(id));
    this.#takeOver(fresh, 'reset');
  }

  #newReplica(service: ServiceRecord, { version, market, reason }: Launch, id: number): { replica: ReplicaRecord; event: NewEvent } {
    const at = this.#context.clock.now();
    const replica = newReplica({ ...service, version }, { id, key: `${service.key}-${id}-${randomHex(6)}`, createdAt: at, market });
    const event = subjectEvent(service, { at, to: replica.state, cause: 'replica-requested', message: reason });
    return { replica, event: { ...event, replicaId: id } };
  }

  async #prune(): Promise<void> {
    const { store, name, files } = this.#context;
    await store.replicas.prune(name, keptEnded);
    const kept = new Set((await store.replicas.list(name)).map(({ id }) => id));
    await removeReplicaLogs(files.replicasDir, kept);
  }

  async #remove(service: ServiceRecord, removal: 'search' | NewEvent, signal: AbortSignal): Promise<void> {
    const { store, history, clock } = this.#context;
    if (removal !== 'search') {
      await store.services.remove(service.name, service.key, removal);
      return this.#finished();
    }
    // A provider that has not answered yet may still create a machine.
    if ((history.isBusy && !service.purge) || clock.monotonic() < this.#searches.nextAt) return;
    // Once the service's record is removed, no later search removes what is left.
    const failures = await removeOrphans(this.#context, signal, { all: true });
    const failed = failures.length === 0 ? 0 : this.#searches.failed + 1;
    this.#searches = { failed, nextAt: clock.monotonic() + delayMs(searchBackoff, failed) };
    this.#leftovers = failures.length === 0 ? 'none' : { reason: `Removing it is tried again: ${failures.join(' ')}` };
    this.#context.wake();
  }
}
