import type { CanarySummary } from './canary.ts';
import type { LoadSignals } from './load-signals.ts';
import type { BalancerReplica, BrokenReplicas } from './balancer-link.ts';
import { expectedReplica, measuredStartSeconds, type ExpectedReplica } from './expected-replica.ts';
import { endpointSet, trafficSplit, type EndpointCandidate } from './endpoint-set.ts';
import { type Change, type NewEvent, type ReplicaRecord, type ServiceMemory, type ServiceRecord, subjectEvent } from './records.ts';
import type { Market } from './placement.ts';
import { rememberFailure } from './replica/crash-loop.ts';
import { noReport, type ReplicaEnd, type ReplicaReport } from './replica/replica-report.ts';
import { isAlive, isEnded, type EndCause } from './replica/replica-state.ts';
import type { ZoneHistories } from './spot/zone-history.ts';
import type { Task } from './task.ts';
import { replicaEvent, transition, type ReplicaChange } from './transition.ts';

/** All inputs of a decision about a service. Plain data. */
export interface World {
  /** ms since the epoch. */
  readonly now: number;
  /** Monotonic ms, for durations within this process. */
  readonly monotonic: number;
  readonly service: ServiceRecord;
  /** The tasks of the service's version, of its proven version and of each replica's. */
  readonly versions: ReadonlyMap<number, Task>;
  /** All records, oldest first. */
  readonly replicas: readonly ReplicaRecord[];
  /** By replica id; `noReport` for others. */
  readonly reports: ReadonlyMap<number, ReplicaReport>;
  /** undefined: no autoscaling decision is due. */
  readonly load: LoadReport | undefined;
  /** Requests in flight by replica id, as far as the balancer reported them. */
  readonly inFlight?: Readonly<Record<string, number>>;
  /** Replicas whose last requests all got no complete response, as the balancers report. */
  readonly broken?: BrokenReplicas;
  /** Whether every provider's machines were listed since this process began. Before, surplus replicas are unknown. */
  readonly isInventoryKnown: boolean;
  /** Why the requests to a canary show that it is worse, as a sentence for users; undefined while they do not. */
  readonly canaryFault?: string | undefined;
  /** What the comparison of the canary has found, when it is time to store it. */
  readonly canaryEvidence?: CanarySummary | undefined;
  /** Of all spot zones that services of this controller have used. */
  readonly zoneHistories: ZoneHistories;
  /**
   * For a removed service: what providers still have of it. `unknown`: no search has ended since the last replica ended
   * or the user last requested the removal. `reason`: why the last search did not complete, as a sentence for users.
   */
  readonly leftovers: 'unknown' | 'none' | { readonly reason: string };
}

/** Input of the autoscaler. */
export interface LoadReport {
  /** Requests that arrived in the last minute. */
  readonly requestsInWindow: number;
  /** Requests that are queued or in flight. */
  readonly busy: number;
  /** Whether the balancer is connected and a whole window was counted. Otherwise the service is not scaled down. */
  readonly isComplete: boolean;
  readonly detail?: LoadDetail;
}

/** Finer figures of the balancer, for the autoscalers other than `request_rate`. */
interface LoadDetail extends Pick<LoadSignals, 'recent' | 'ongoing' | 'queued'> {
  /** Requests in flight by replica id. */
  readonly inFlight: Readonly<Record<string, number>>;
}

/** A replica to launch. */
export interface Launch {
  readonly version: number;
  /** null: any that the file allows. */
  readonly market: Market | null;
  /** A sentence for users. */
  readonly reason: string;
}

interface ChangedReplica extends ReplicaChange {
  readonly replica: ReplicaRecord;
}

/** The result of a decision. One transaction commits `change`, `stop`, `launch`, `service`, `events`. It may be repeated. */
export interface Decision {
  readonly launch: readonly Launch[];
  /** Living replicas that the service's version takes over, fall asleep or wake up. */
  readonly change: readonly ChangedReplica[];
  readonly stop: readonly ChangedReplica[];
  readonly endpoints: readonly BalancerReplica[];
  /** For the texts to clients that wait; see `expectedReplica`. */
  readonly expected: ExpectedReplica | undefined;
  readonly service: Change<ServiceRecord>;
  readonly events: readonly NewEvent[];
  /** When to decide again without a new report, ms since the epoch; undefined when no such time is known. */
  readonly wakeAt: number | undefined;
  /** Time until the next autoscaling decision, ms; undefined when none was made. */
  readonly nextLoadMs: number | undefined;
  /** Whether there are more records of ended replicas than `keptEnded`. */
  readonly prune: boolean;
  /** `search`: list what providers still have of the removed service. An event: drop its records with this event. */
  readonly removal: 'search' | NewEvent | undefined;
}

/** Number of records of ended replicas that are kept for users. */
export const keptEnded = 20;

/** Causes of ends that do not indicate a fault of the program. */
const desiredEnds: readonly EndCause[] = ['scale-down', 'update', 'user', 'service-down', 'preempted', 'interruption'];

const isFailure = (cause: EndCause): boolean => !desiredEnds.includes(cause);

/** An incomplete decision. Each step sees the replicas as the earlier steps changed them. */
export class Draft {
  readonly world: World;
  #replicas: readonly ReplicaRecord[];
  readonly #launch: Launch[] = [];
  #change: readonly ChangedReplica[] = [];
  readonly #stop: ChangedReplica[] = [];
  readonly #events: NewEvent[] = [];
  #service: Change<ServiceRecord> = {};
  /** The service's record with the changes so far. */
  #present: ServiceRecord;
  /** Of `#replicas`; undefined after a change. */
  #living: readonly ReplicaRecord[] | undefined;
  wakeAt: number | undefined;
  nextLoadMs: number | undefined;
  removal: Decision['removal'];

  constructor(world: World) {
    this.world = world;
    this.#replicas = world.replicas;
    this.#present = world.service;
  }

  get replicas(): readonly ReplicaRecord[] {
    return this.#replicas;
  }

  get living(): readonly ReplicaRecord[] {
    this.#living ??= this.#replicas.filter(({ state }) => isAlive(state));
    return this.#living;
  }

  get service(): ServiceRecord {
    return this.#present;
  }

  get memory(): ServiceMemory {
    return this.service.memory;
  }

  report(id: number): ReplicaReport {
    return this.world.reports.get(id) ?? noReport;
  }

  /** The number of launches so far. */
  get launches(): number {
    return this.#launch.length;
  }

  /** The id that the next launched replica will have. */
  get nextReplicaId(): number {
    return this.world.service.nextReplicaId + this.launches;
  }

  launch(launch: Launch): void {
    this.#launch.push(launch);
  }

  /** Gives a replica the service's version. */
  adopt(replica: ReplicaRecord): void {
    const { now, service } = this.world;
    const { version } = service;
    const message = `Version ${version} changes nothing for it: it belongs to version ${version} now.`;
    const event = replicaEvent(replica, { explanation: { cause: 'adopted', message }, now, serviceKey: service.key, to: replica.state });
    this.#apply(replica, { change: { version }, event });
  }

  /** Puts a ready replica to sleep. */
  sleep(replica: ReplicaRecord): void {
    this.#transit(replica, 'sleep-requested', 'The service needs no replica; its engine releases its memory.');
  }

  /** Wakes a sleeping replica up. */
  wakeUp(replica: ReplicaRecord, reason: string): void {
    this.#transit(replica, 'wake-requested', reason);
  }

  #transit(replica: ReplicaRecord, type: 'sleep-requested' | 'wake-requested', message: string): void {
    const { now, service } = this.world;
    const change = transition(replica, { type }, { explanation: { cause: type, message }, now, serviceKey: service.key });
    if (change !== undefined) this.#apply(replica, change);
  }

  #apply(replica: ReplicaRecord, change: ReplicaChange): void {
    this.#change = [...this.#change, { replica, ...change }];
    this.#patchReplica(replica.id, change);
  }

  /** Ignores a replica that is terminating or has ended. A failure is counted in the same transaction. */
  stop(id: number, { cause, reason, killed = false, neverStarted = false }: ReplicaEnd): void {
    const { now, service } = this.world;
    const replica = this.#replicas.find((one) => one.id === id);
    if (replica === undefined || !(isAlive(replica.state) || replica.state === 'UNKNOWN')) return;
    const explanation = { cause, message: reason };
    const patch = { endCause: cause, reason };
    const change = transition(replica, { type: 'stop-requested', cause }, { explanation, now, serviceKey: service.key, patch });
    if (change === undefined) return;
    if (isFailure(cause) && isAlive(replica.state)) {
      const readyMs = replica.readySince === null ? 0 : now - replica.readySince;
      const failure = {
        at: now,
        version: replica.version,
        everReady: replica.firstReadyAt !== null,
        readyMs,
        killed,
        ...(neverStarted && { neverStarted }),
      };
      this.patch({ memory: { ...this.memory, failures: rememberFailure(this.memory.failures, failure) } });
    }
    // One commit changes a record once.
    this.#change = this.#change.filter((changed) => changed.replica.id !== id);
    this.#stop.push({ replica, ...change });
    this.#patchReplica(id, change);
  }

  #patchReplica(id: number, { change }: ReplicaChange): void {
    this.#replicas = this.#replicas.map((one) => (one.id === id ? { ...one, ...change } : one));
    this.#living = undefined;
  }

  patch(change: Change<ServiceRecord>): void {
    this.#service = { ...this.#service, ...change };
    this.#present = { ...this.#present, ...change };
  }

  event(change: Parameters<typeof subjectEvent>[1]): void {
    this.#events.push(subjectEvent(this.world.service, change));
  }

  decision(): Decision {
    return {
      launch: this.#launch,
      change: this.#change,
      stop: this.#stop,
      endpoints: endpointSet(endpointCandidates({ ...this.world, replicas: this.#replicas }), trafficSplit(this.service)),
      expected: expectedReplica(this.#replicas, measuredStartSeconds(this.#replicas)),
      service: this.#service,
      events: this.#events,
      wakeAt: this.wakeAt,
      nextLoadMs: this.nextLoadMs,
      prune: this.#replicas.filter(({ state }) => isEnded(state)).length > keptEnded,
      removal: this.removal,
    };
  }
}

/** The input of `endpointSet` for a world. */
export function endpointCandidates({
  replicas,
  reports,
  versions,
}: Pick<World, 'replicas' | 'reports' | 'versions'>): readonly EndpointCandidate[] {
  return replicas.map((record) => ({
    record,
    report: reports.get(record.id) ?? noReport,
    spec: versions.get(record.version)?.service,
  }));
}
