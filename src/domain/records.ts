import type { CanarySummary } from './canary.ts';
import type { ReplicaAddress } from '../shared/replica-address.ts';
import type { ProcessIdentity } from '../shared/system/process-identity.ts';
import type { AutoscalerMemory } from './autoscale.ts';
import type { Market, PlacementMemory } from './placement.ts';
import type { Failure } from './replica/crash-loop.ts';
import type { EndCause, ReplicaState } from './replica/replica-state.ts';
import type { ServiceState } from './service-state.ts';
import type { Task, UpdateMode } from './task.ts';

/** One service. Times are ms since the epoch. */
export interface ServiceRecord {
  readonly name: string;
  /** 8 hex digits. A service that is deployed again under the same name has another key. */
  readonly key: string;
  readonly state: ServiceState;
  readonly desired: 'up' | 'down';
  /** With `down`: records are removed even when a machine could not be terminated. */
  readonly purge: boolean;
  readonly host: string;
  readonly port: number;
  /** The newest version; versions count from 1. */
  readonly version: number;
  readonly createdAt: number;
  readonly firstReadyAt: number | null;
  /** Why it failed or is still being removed: sentences, with the last log lines when they help. */
  readonly reason: string | null;
  /** Id of the next replica. Ids are never reused within a service. */
  readonly nextReplicaId: number;
  /** State of the autoscaler and of the crash-loop guard, owned by `domain/`; plain JSON. */
  readonly memory: ServiceMemory;
  readonly reconciler: ProcessIdentity | null;
  readonly balancer: ProcessIdentity | null;
  readonly processesFailed: boolean;
  /** Increases with each change; used for compare-and-set. */
  readonly revision: number;
}

/** State that the pure decisions keep between passes and restarts. */
export interface ServiceMemory {
  readonly initialised: boolean;
  readonly autoscaler: AutoscalerMemory | null;
  /** The last change of the number of replicas that the load requires, as a sentence for users; absent before one. */
  readonly scaled?: { readonly at: number; readonly reason: string };
  readonly failures: readonly Failure[];
  readonly gaveUp: boolean;
  /** The newest version of which a replica was ever ready; absent before, and in records from before updates. */
  readonly provenVersion?: number;
  /** The value of `provenVersion` before the present one: what a rollback goes back to. */
  readonly provenBefore?: number;
  readonly update?: UpdateProgress | undefined;
  /** Replicas that `max_hourly_cost` keeps from being launched; absent for none. */
  readonly costLimited?: number;
  /** Knowledge about locations; absent in records of older versions. */
  readonly placement?: PlacementMemory;
  /**
   * Refusals that the reconciler must drop; it clears this mark. `all`: a user asked for a retry, or restarted the
   * controller. `early`: the controller started after a crash; late refusals stay. `all-at-start`: the controller was
   * stopped, and changes this to `all` when it starts.
   */
  readonly retry?: 'all' | 'early' | 'all-at-start' | undefined;
}

/** An update in progress or stopped. Times are ms since the epoch. */
export interface UpdateProgress {
  /** The version that it began with. */
  readonly from: number;
  readonly at: number;
  /** Absent: `rolling`. */
  readonly mode?: UpdateMode;
  /** When a replica was last adopted whose probe changes. */
  readonly adoptedAt?: number;
  /** The share of the requests for the new version, 0 to 1. Absent: every ready replica serves alike. */
  readonly share?: number;
  /**
   * Of a canary: the index of its step in the policy; after the last step the number of steps. Of `blue_green`: 1 once
   * the old replicas may end.
   */
  readonly step?: number;
  /** When `share` reached the value of the step, or of the switch of `blue_green`. */
  readonly stepAt?: number | undefined;
  /** Of a canary: what its comparison has found, so that another reconciler goes on with it. */
  readonly evidence?: CanarySummary | undefined;
  /** Why the comparison of a canary stopped the update: a sentence for users. */
  readonly rejected?: string;
  /** Since when a user holds the update, and how many replicas and which share the new version had then. */
  readonly paused?: { readonly at: number; readonly replicas: number; readonly share: number } | undefined;
}

/** One version of a service's file. */
export interface VersionRecord {
  readonly service: string;
  readonly version: number;
  /** Contains the values of envs and secrets. Only the owner may read the database. */
  readonly task: Task;
  /** The file's text as the user wrote it, for display. It lacks values from the command line. */
  readonly source: string;
  readonly createdAt: number;
}

/** One replica, from the intent to create it until (and after) its end. */
export interface ReplicaRecord {
  readonly service: string;
  readonly id: number;
  readonly version: number;
  readonly state: ReplicaState;
  /** Market of the machines that may be requested for it; null: any, also in records from before markets. */
  readonly market: Market | null;
  /** Idempotency key for requests to the provider. It is written before the first request. */
  readonly key: string;
  readonly offer: OfferRecord | null;
  readonly machineId: string | null;
  readonly address: ReplicaAddress | null;
  readonly createdAt: number;
  readonly launchedAt: number | null;
  /** When the program (`run`) started. */
  readonly startedAt: number | null;
  readonly firstReadyAt: number | null;
  /** When it last became ready; null while it is not ready. */
  readonly readySince: number | null;
  readonly firstProbeFailureAt: number | null;
  readonly endCause: EndCause | null;
  /** A sentence for users. */
  readonly reason: string | null;
  readonly endRequestedAt: number | null;
  readonly endedAt: number | null;
  readonly revision: number;
}

/** A provider's offer without the provider's own fields. The price is for all nodes, the other fields are per node. */
export interface OfferRecord {
  readonly provider: string;
  readonly region: string;
  readonly zone: string | null;
  readonly instanceType: string;
  readonly resources: string;
  /** Absent in older records, as is `accelerator`. */
  readonly cpus?: number;
  /** Number of accelerators of the machine, and their kind. Older records lack the kind. */
  readonly gpus: number;
  readonly accelerator?: string;
  readonly spot: boolean;
  readonly hourlyUsd: number;
}

/** One line of the history. */
export interface EventRecord {
  /** Ascending over all services. */
  readonly id: number;
  readonly at: number;
  /** Name of the service or cluster, and its key, because names may be reused. */
  readonly subject: string;
  readonly subjectKey: string;
  readonly replicaId: number | null;
  readonly from: string | null;
  readonly to: string | null;
  /** Short stable word for the cause, such as `probe-failed`. */
  readonly cause: string;
  /** A sentence for users. Never contains values of envs or secrets. */
  readonly message: string;
}

/** An event before it has its id. */
export type NewEvent = Omit<EventRecord, 'id'>;

/** A cluster: one machine for single launches (`svc launch`). */
export interface ClusterRecord {
  readonly name: string;
  readonly key: string;
  readonly state: 'INIT' | 'UP' | 'SHUTTING_DOWN' | 'FAILED';
  readonly machineKey: string;
  readonly machineId: string | null;
  readonly offer: OfferRecord | null;
  readonly createdAt: number;
  readonly reason: string | null;
  readonly revision: number;
}

/** One job on a cluster; ids count from 1 within it. */
export interface JobRecord {
  readonly cluster: string;
  readonly id: number;
  readonly state: 'PENDING' | 'SETTING_UP' | 'RUNNING' | 'SUCCEEDED' | 'FAILED' | 'FAILED_SETUP' | 'CANCELLED';
  readonly task: Task;
  readonly createdAt: number;
  readonly startedAt: number | null;
  readonly endedAt: number | null;
  readonly exitCode: number | null;
  readonly revision: number;
}

/** A change of a record: only these fields. `revision` increases by itself. */
export type Change<Row> = Partial<Omit<Row, 'revision' | 'name' | 'key' | 'service' | 'id' | 'cluster'>>;

/** The record of a new replica, of the present version. It has no machine unless `known` gives one. */
export function newReplica(
  service: Pick<ServiceRecord, 'name' | 'version'>,
  known: Pick<ReplicaRecord, 'id' | 'key' | 'createdAt'> & Partial<ReplicaRecord>,
): ReplicaRecord {
  return {
    service: service.name,
    version: service.version,
    state: 'PENDING',
    market: null,
    offer: null,
    machineId: null,
    address: null,
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
    ...known,
  };
}

interface SubjectChange {
  readonly at: number;
  /** Absent when no state changes. */
  readonly from?: string;
  readonly to?: string;
  readonly cause: string;
  readonly message: string;
}

/** One line of the history about a service or cluster as a whole. */
export function subjectEvent(subject: { readonly name: string; readonly key: string }, change: SubjectChange): NewEvent {
  const { at, from = null, to = null, cause, message } = change;
  return { at, subject: subject.name, subjectKey: subject.key, replicaId: null, from, to, cause, message };
}
