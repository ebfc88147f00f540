import { launchGate, type LaunchGate } from '../../domain/crash-loop.ts';
import type { OccupiedPlace } from '../../domain/placement.ts';
import { planReplicas } from '../../domain/plan.ts';
import { isAlive, isEnded, isFailed } from '../../domain/replica-state.ts';
import { serviceState } from '../../domain/service-state.ts';
import type { CancelTimer } from '../../shared/clock.ts';
import type { Loop } from '../../shared/loop.ts';
import { randomHex } from '../../shared/random-hex.ts';
import { countReplicas } from '../../spec/describe.ts';
import type { ReplicaRecord, ServiceRecord } from '../../store/records.ts';
import type { BalancerView } from './balancer-client.ts';
import { removeOrphans, type LostMachine } from './machine-sweep.ts';
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

/** Brings one service to what is wanted of it, pass by pass. */
export class Reconciler implements Loop {
  readonly name = 'reconcile';
  readonly everyMs = passEveryMs;
  readonly #context: ServiceContext;
  readonly #balancer: { readonly view: BalancerView };
  /** Called once when the service is gone and nothing is left to do. */
  readonly #finished: () => void;
  readonly #drivers = new Map<number, ReplicaDriver>();
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

  /** The place of a replica says that its machine is gone. */
  async machineLost({ replicaId, cause, reason }: LostMachine): Promise<void> {
    await this.#drivers.get(replicaId)?.stop(cause, reason, true);
  }

  /** Where living replicas have a machine, for spreading. */
  occupied(): readonly OccupiedPlace[] {
    return [...this.#drivers.values()].flatMap(({ handle: { record, state } }) =>
      record.place !== null && record.machineId !== null && isAlive(state) ? [record.place] : [],
    );
  }

  async tick(signal: AbortSignal): Promise<void> {
    const { store, name, key } = this.#context;
    const service = await store.services.get(name);
    if (service === undefined || service.key !== key) return this.#finished();
    const replicas = await store.replicas.list(name);
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
    const autoscaler = await this.#autoscaler.decide(service, policy, this.#balancer.view, fleetOf(task, replicas));
    const wanted = autoscaler.target === 0 && policy.minReplicas === 0 ? 0 : autoscaler.target + policy.numOverprovision;
    const gate = gateOf(service, wanted, clock.now());
    const actions = planReplicas(withCapacity(task, replicas), wanted);
    for (const action of actions) {
      if (action.type === 'stop') {
        const reason = `The service is to have ${countReplicas(wanted)}; this one is surplus.`;
        await this.#drivers.get(action.replicaId)?.stop('scale-down', reason);
      } else if (!gate.gaveUp && gate.notBefore <= clock.now())
        await this.#intendReplica(`The service is to have ${countReplicas(wanted)}.`);
    }
    if (gate.notBefore > clock.now() && actions.length > 0) this.#wakeAt(gate.notBefore);
    await this.#report(replicas, wanted, gate.gaveUp);
    if (replicas.filter((replica) => isEnded(replica.state)).length > keptEnded)
      await this.#context.store.replicas.prune(this.#context.name, keptEnded);
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
    const last = replicas.findLast((replica) => replica.reason !== null && isFailed(replica.state));
    const why = gaveUp
      ? `No replica ever became ready, and no more are launched. Replica ${last?.id ?? '?'}: ${last?.reason ?? 'no reason known'}`
      : null;
    const reason = state === 'FAILED' ? why : null;
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
