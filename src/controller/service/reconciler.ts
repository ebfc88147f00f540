import { launchGate, type LaunchGate } from '../../domain/crash-loop.ts';
import { leaversNow, type LeavingReplica } from '../../domain/leaving.ts';
import type { OccupiedPlace } from '../../domain/placement.ts';
import { planReplicas } from '../../domain/plan.ts';
import { finalStates, isAlive, isEnded, isFailed } from '../../domain/replica-state.ts';
import { serviceState } from '../../domain/service-state.ts';
import type { CancelTimer } from '../../shared/clock.ts';
import type { Loop } from '../../shared/loop.ts';
import { randomHex } from '../../shared/random-hex.ts';
import { countReplicas } from '../../spec/describe.ts';
import type { ReplicaRecord, ServiceRecord } from '../../store/records.ts';
import type { BalancerView } from './balancer-client.ts';
import type { LostMachine } from './machine-sweep.ts';
import { removeOrphans } from './orphan-sweep.ts';
import { fleetOf, withCapacity } from './replica-capacity.ts';
import { ReplicaDriver } from './replica-driver.ts';
import { ReplicaHandle } from './replica-handle.ts';
import { ServiceAutoscaler } from './service-autoscaler.ts';
import type { ServiceContext } from './service-context.ts';
import { subjectEvent } from '../subject-event.ts';

/** A pass is made whenever something changed; this often in any case, ms. */
const passEveryMs = 1_000;
/** Records of ended replicas that are kept for people to look at. */
const keptEnded = 20;

/** Having given up is remembered with the service: the failures behind it grow old. */
function gateOf({ memory, firstReadyAt }: ServiceRecord, wanted: number, now: number): LaunchGate {
  const gate = launchGate(memory.failures, wanted, firstReadyAt !== null, now);
  return { ...gate, gaveUp: gate.gaveUp || (memory.gaveUp && firstReadyAt === null) };
}

/** The newest replica that failed, or is about to have. */
function lastFailure(replicas: readonly ReplicaRecord[]): ReplicaRecord | undefined {
  return replicas.findLast(
    ({ reason, state, endCause }) =>
      reason !== null && isFailed(state === 'SHUTTING_DOWN' && endCause !== null ? finalStates[endCause] : state),
  );
}

function whyGivenUp(service: string, last: ReplicaRecord | undefined): string {
  const what = 'No replica ever became ready, and no more are launched';
  return last === undefined ? `${what}.` : `${what} (see: svc serve logs ${service} ${last.id}). Replica ${last.id}: ${last.reason}`;
}

/** Brings one service to what is wanted of it, pass by pass. */
export class Reconciler implements Loop {
  readonly name = 'reconcile';
  readonly everyMs = passEveryMs;
  readonly #context: ServiceContext;
  readonly #balancer: { readonly view: BalancerView };
  /** Called once when the service is gone and nothing is left to do. */
  readonly #finished: () => void;
  readonly #drivers = new Map<number, ReplicaDriver>();
  /** Replicas whose machines their places will take back. */
  readonly #leaving = new Map<number, Pick<LeavingReplica, 'noticedAt' | 'takenAt'> & { readonly reason: string }>();
  /** What was asked for last of the removal of the service. */
  #removal = '';
  readonly #autoscaler: ServiceAutoscaler;
  #cancelWake: CancelTimer = () => undefined;

  constructor(context: ServiceContext, balancer: { readonly view: BalancerView }, finished: () => void) {
    this.#context = context;
    this.#balancer = balancer;
    this.#finished = finished;
    this.#autoscaler = new ServiceAutoscaler(context);
  }

  /** Takes note of requests that reached the balancer. */
  arrivals(count: number, queued: number): void {
    this.#autoscaler.arrivals(count);
    // From zero, the first request decides at once instead of waiting for the next tick; so do those that came before this process did.
    if ((count > 0 || queued > 0) && this.#drivers.size === 0) {
      this.#autoscaler.decideNow();
      this.#context.wake();
    }
  }

  /** The balancer saw a replica misbehave: it is asked at once. */
  suspect(replicaId: number): void {
    this.#drivers.get(replicaId)?.probeNow();
  }

  /** The place of a replica says that its machine is gone, or will be: then it serves on until its replacement does. */
  async machineLost({ replicaId, loss }: LostMachine): Promise<void> {
    const driver = this.#drivers.get(replicaId);
    if (driver === undefined) return;
    if (loss.type === 'gone') {
      // Before anything is written: requests must not wait for the disk.
      this.#context.rotation.remove(replicaId);
      await driver.stop(loss.cause, loss.reason, { killed: true });
    } else if (!this.#leaving.has(replicaId)) {
      this.#leaving.set(replicaId, { noticedAt: this.#context.clock.now(), takenAt: loss.at, reason: loss.reason });
      await driver.handle.note({}, { cause: 'interruption-notice', message: loss.reason });
      this.#context.wake();
    }
  }

  /** Where living replicas have a machine, for spreading. */
  occupied(): readonly OccupiedPlace[] {
    return [...this.#drivers.values()].flatMap(({ handle: { record, state } }) =>
      record.place !== null && record.machineId !== null && isAlive(state) ? [record.place] : [],
    );
  }

  async tick(signal: AbortSignal): Promise<void> {
    const { store, name, key } = this.#context;
    // In this order: of a replica that is seen to have failed, the service knows the failure.
    const replicas = await store.replicas.list(name);
    const service = await store.services.get(name);
    if (service === undefined || service.key !== key) return this.#finished();
    this.#drive(replicas, signal);
    if (service.desired === 'down') await this.#takeDown(service, replicas, signal);
    else await this.#keepUp(service, replicas);
  }

  /** One driver for each replica that has not ended; an intent written by another process is carried out. */
  #drive(replicas: readonly ReplicaRecord[], signal: AbortSignal): void {
    for (const record of replicas) {
      const driver = this.#drivers.get(record.id);
      if (driver === undefined && !isEnded(record.state)) this.#start(record, signal);
      driver?.handle.refresh(record);
      if (record.endRequestedAt !== null && (isAlive(record.state) || record.state === 'UNKNOWN')) {
        void this.#drivers
          .get(record.id)
          ?.stop('user', 'It was ended by a user.')
          .catch((error: unknown) => this.#log(error));
      }
    }
  }

  #start(record: ReplicaRecord, signal: AbortSignal): void {
    const driver = new ReplicaDriver(this.#context, new ReplicaHandle(this.#context, record), () => this.#balancer.view);
    this.#drivers.set(record.id, driver);
    const ended = driver.run(signal).catch((error: unknown) => this.#log(error));
    void ended.then(() => this.#drivers.delete(record.id));
  }

  async #keepUp(service: ServiceRecord, replicas: readonly ReplicaRecord[]): Promise<void> {
    const { clock } = this.#context;
    const task = await this.#context.task(service.version);
    if (task.service === undefined) return;
    const policy = task.service.replicaPolicy;
    const staying = this.#staying(replicas);
    const autoscaler = await this.#autoscaler.decide(service, policy, this.#balancer.view, fleetOf(task, staying));
    const wanted = autoscaler.target === 0 && policy.minReplicas === 0 ? 0 : autoscaler.target + policy.numOverprovision;
    const gate = gateOf(service, wanted, clock.now());
    const actions = planReplicas(withCapacity(task, staying), wanted);
    let room = gate.atMost - staying.filter(({ state }) => isAlive(state)).length;
    for (const action of actions) {
      if (action.type === 'stop') {
        const reason = `The service is to have ${countReplicas(wanted)}; this one is surplus.`;
        await this.#drivers.get(action.replicaId)?.stop('scale-down', reason);
      } else if (room > 0 && !gate.gaveUp && gate.notBefore <= clock.now()) {
        room -= 1;
        await this.#intendReplica(`The service is to have ${countReplicas(wanted)}.`);
      }
    }
    await this.#letLeave(replicas, staying, wanted, task.service.gracefulTerminationSeconds * 1_000);
    if (gate.notBefore > clock.now() && actions.length > 0) this.#wakeAt(gate.notBefore);
    // A failure is counted before the end of its replica is written, which has the reason: that is waited for.
    const isReasonKnown = lastFailure(replicas) !== undefined || !replicas.some(({ state }) => isAlive(state));
    await this.#report(replicas, wanted, gate.gaveUp && (service.memory.gaveUp || isReasonKnown));
    if (replicas.filter((replica) => isEnded(replica.state)).length > keptEnded)
      await this.#context.store.replicas.prune(this.#context.name, keptEnded);
  }

  /** The replicas without those whose machines will be taken back; what is known of machines that are gone is forgotten. */
  #staying(replicas: readonly ReplicaRecord[]): readonly ReplicaRecord[] {
    const living = new Set(replicas.flatMap(({ id, state }) => (isAlive(state) ? [id] : [])));
    for (const id of this.#leaving.keys()) if (!living.has(id)) this.#leaving.delete(id);
    return replicas.filter(({ id }) => !this.#leaving.has(id));
  }

  async #letLeave(replicas: readonly ReplicaRecord[], staying: readonly ReplicaRecord[], wanted: number, graceMs: number): Promise<void> {
    const leaving = replicas.flatMap(({ id, state }) => {
      const notice = this.#leaving.get(id);
      return notice === undefined ? [] : [{ id, state, ...notice }];
    });
    const ready = staying.filter(({ state }) => state === 'READY').length;
    for (const id of leaversNow(leaving, ready, wanted, graceMs, this.#context.clock.now()))
      await this.#drivers.get(id)?.stop('interruption', this.#leaving.get(id)?.reason ?? 'Its machine is taken back by its place.');
  }

  #wakeAt(time: number): void {
    this.#cancelWake();
    this.#cancelWake = this.#context.clock.after(time - this.#context.clock.now(), () => this.#context.wake());
  }

  async #intendReplica(why: string): Promise<void> {
    const { store, name, clock } = this.#context;
    for (;;) {
      const service = await store.services.get(name);
      if (service === undefined || service.key !== this.#context.key || service.desired === 'down') return;
      const id = service.nextReplicaId;
      const replica: ReplicaRecord = {
        service: name,
        id,
        version: service.version,
        state: 'PENDING',
        key: `${this.#context.key}-${id}-${randomHex(6)}`,
        place: null,
        machineId: null,
        address: null,
        createdAt: clock.now(),
        launchedAt: null,
        startedAt: null,
        firstReadyAt: null,
        readySince: null,
        firstProbeFailureAt: null,
        endCause: null,
        reason: null,
        endRequestedAt: null,
        endedAt: null,
        revision: 0,
      };
      const event = {
        at: clock.now(),
        subject: name,
        subjectKey: service.key,
        replicaId: id,
        from: null,
        to: 'PENDING',
        cause: 'wanted',
        message: why,
      };
      if ((await store.replicas.add(service, replica, event)) !== undefined) break;
    }
    this.#context.wake();
  }

  async #takeDown(service: ServiceRecord, replicas: readonly ReplicaRecord[], signal: AbortSignal): Promise<void> {
    const removal = `${service.desired} ${service.purge}`;
    // Who takes a service down does not wait for the next of attempts that are minutes apart.
    if (this.#removal !== removal) for (const driver of this.#drivers.values()) driver.hurry();
    this.#removal = removal;
    for (const replica of replicas) {
      // What could not be removed is being tried again all the time.
      if (!isEnded(replica.state) && replica.state !== 'FAILED_CLEANUP')
        await this.#drivers.get(replica.id)?.stop('service-down', 'The service is being taken down.');
    }
    await this.#report(replicas, 0, false);
    const left = replicas.filter((replica) => !isEnded(replica.state));
    if (left.length > 0 && !(service.purge && left.every((replica) => replica.state === 'FAILED_CLEANUP'))) return;
    // A place that has not answered yet may still give a machine.
    if (this.#context.history.isBusy && !service.purge) return;
    // What cannot be removed now would never be looked for again.
    if (!(await removeOrphans(this.#context, signal, true)) && !service.purge) return;
    const message =
      left.length === 0
        ? 'Nothing is left of it.'
        : `Its records were removed by force; machines of ${left.length} replicas may still exist.`;
    const event = subjectEvent(service, { at: this.#context.clock.now(), from: service.state, cause: 'down', message });
    await this.#context.store.services.remove(service.name, service.key, event);
    this.#finished();
  }

  /** Writes the state that follows from the facts, when it is another one. */
  async #report(replicas: readonly ReplicaRecord[], target: number, gaveUp: boolean): Promise<void> {
    const { store, name, key, clock } = this.#context;
    const service = await store.services.get(name);
    if (service === undefined || service.key !== key) return;
    const shuttingDown = service.desired === 'down';
    const state = serviceState({
      replicas: replicas.map((replica) => replica.state),
      target,
      initialised: true,
      shuttingDown,
      cleanupFailed: shuttingDown && replicas.some((replica) => replica.state === 'FAILED_CLEANUP'),
      processesFailed: service.processesFailed,
      gaveUp,
    });
    if (state === service.state && service.memory.initialised && service.memory.gaveUp === gaveUp) return;
    const reason = state === 'FAILED' && gaveUp ? whyGivenUp(name, lastFailure(replicas)) : null;
    const event = {
      at: clock.now(),
      subject: name,
      subjectKey: service.key,
      replicaId: null,
      from: service.state,
      to: state,
      cause: gaveUp ? 'gave-up' : 'derived',
      message: reason ?? `The service is ${state}.`,
    };
    const change = { state, reason, memory: { ...service.memory, initialised: true, gaveUp } };
    await store.services.update(service, change, state === service.state ? undefined : event);
  }

  #log(error: unknown): void {
    this.#context.log.error({ err: error }, 'a replica could not be driven on');
  }
}
