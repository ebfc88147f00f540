import type { PlacementMemory } from '../domain/placement.ts';
import type { EndCause, ReplicaState } from '../domain/replica-state.ts';
import type { ServiceState } from '../domain/service-state.ts';
import type { Task } from '../domain/task.ts';
import type { ProcessIdentity } from '../shared/process-identity.ts';
import type { ReplicaAddress } from '../shared/replica-address.ts';

/** One service. Times are ms since the epoch. */
export interface ServiceRecord {
  readonly name: string;
  /** Short unique id (8 hex digits): a service taken down and put up again under one name is another service. */
  readonly key: string;
  readonly state: ServiceState;
  /** What the user wants of it. */
  readonly desired: 'up' | 'down';
  /** With `down`: records are removed even when a machine could not be. */
  readonly purge: boolean;
  readonly host: string;
  readonly port: number;
  /** The newest version; versions count from 1. */
  readonly version: number;
  readonly createdAt: number;
  readonly firstReadyAt: number | null;
  /** Why it is in a failed state, as one or more sentences, with the last log lines where they tell. */
  readonly reason: string | null;
  /** Ids are never used twice within a service. */
  readonly nextReplicaId: number;
  /** State of the autoscaler and of the crash-loop guard, owned by `domain/`; plain JSON. */
  readonly memory: ServiceMemory;
  readonly reconciler: ProcessIdentity | null;
  readonly balancer: ProcessIdentity | null;
  /** Set while its processes keep dying. */
  readonly processesFailed: boolean;
  /** Counts up with each change: for compare-and-set. */
  readonly revision: number;
}

/** What the pure decisions remember between passes and restarts. */
export interface ServiceMemory {
  readonly initialised: boolean;
  readonly autoscaler: { readonly target: number; readonly upCount: number; readonly downCount: number } | null;
  readonly failures: readonly {
    readonly at: number;
    readonly everReady: boolean;
    readonly readyMs: number;
    readonly killed: boolean;
    readonly neverStarted?: boolean;
  }[];
  readonly gaveUp: boolean;
  /** What was learned of the places; absent in records of before. */
  readonly placement?: PlacementMemory;
}

/** One version of a service's file. */
export interface VersionRecord {
  readonly service: string;
  readonly version: number;
  /** With the values of envs and secrets: the database is readable by its owner alone. */
  readonly task: Task;
  /** The file's text as the user wrote it, for showing; values given on the command line are not in it. */
  readonly source: string;
  readonly createdAt: number;
}

/** One replica, from the intent to have it until (and after) it is gone. */
export interface ReplicaRecord {
  readonly service: string;
  readonly id: number;
  readonly version: number;
  readonly state: ReplicaState;
  /** Idempotency key given to the place; written before anything is asked for. */
  readonly key: string;
  readonly place: PlaceRecord | null;
  readonly machineId: string | null;
  readonly address: ReplicaAddress | null;
  readonly createdAt: number;
  readonly launchedAt: number | null;
  /** When the program (`run`) was started. */
  readonly startedAt: number | null;
  readonly firstReadyAt: number | null;
  /** When it last became ready; null while it is not ready. */
  readonly readySince: number | null;
  readonly firstProbeFailureAt: number | null;
  readonly endCause: EndCause | null;
  /** A sentence for people. */
  readonly reason: string | null;
  readonly endRequestedAt: number | null;
  readonly endedAt: number | null;
  readonly revision: number;
}

/** Where a replica is; a provider's offer without what only the provider needs. The price is of all its nodes, the rest of each of them. */
export interface PlaceRecord {
  readonly provider: string;
  readonly region: string;
  readonly zone: string | null;
  readonly instanceType: string;
  readonly resources: string;
  /** Absent in older records, as `accelerator` is. */
  readonly cpus?: number;
  /** How many accelerators the machine has, and of which kind; older records have no kind. */
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
  /** The service's or cluster's name, and its key, as names may be used again. */
  readonly subject: string;
  readonly subjectKey: string;
  readonly replicaId: number | null;
  readonly from: string | null;
  readonly to: string | null;
  /** Short stable word for why, such as `probe-failed`. */
  readonly cause: string;
  /** A sentence for people. Never contains values of envs or secrets. */
  readonly message: string;
}

/** A line of the history before it has its id. */
export type NewEvent = Omit<EventRecord, 'id'>;

/** A cluster: one machine for single launches (`svc launch`). */
export interface ClusterRecord {
  readonly name: string;
  readonly key: string;
  readonly state: 'INIT' | 'UP' | 'SHUTTING_DOWN' | 'FAILED';
  readonly machineKey: string;
  readonly machineId: string | null;
  readonly place: PlaceRecord | null;
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
