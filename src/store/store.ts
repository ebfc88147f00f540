import type { LeaseView } from '../domain/leadership.ts';
import type { ClusterRecord, EventRecord, JobRecord, NewEvent, ReplicaRecord, ServiceRecord, VersionRecord } from './records.ts';

/** A change of a record: only these fields; `revision` counts up by itself. */
export type Change<Row> = Partial<Omit<Row, 'revision' | 'name' | 'key' | 'service' | 'id' | 'cluster'>>;

/**
 * Everything that is remembered. Several processes use one database at once (the daemon and each service's reconciler), so every change is
 * guarded by the revision that was read (compare-and-set) and comes with its event in one transaction.
 */
export interface Store {
  /** Whether controllers on other machines may have it open too: what they need of the disk is then kept in `files`. */
  readonly isShared: boolean;
  readonly services: ServiceRepository;
  readonly replicas: ReplicaRepository;
  readonly events: EventRepository;
  readonly clusters: ClusterRepository;
  readonly files: FileRepository;
  readonly leadership: LeadershipRepository;
  /**
   * Tells that this process leads with a term. From then on it writes with it, and whatever is of a lower one is refused with SVC_NOT_LEADER; so is this itself
   * when there is a higher one.
   */
  raiseTerm(term: number): Promise<void>;
  close(): Promise<void>;
}

/** Services and the versions of their files. */
export interface ServiceRepository {
  list(): Promise<readonly ServiceRecord[]>;
  get(name: string): Promise<ServiceRecord | undefined>;
  /**
   * Adds a service with its first version and event, unless `limit` services exist already (SVC_TOO_MANY_SERVICES), the name is taken
   * (SVC_NAME_IN_USE), or another service has the port (SVC_PORT_BUSY): one transaction, so that two at once cannot both pass.
   */
  add(service: ServiceRecord, version: VersionRecord, event: NewEvent, limit: number): Promise<void>;
  /** The changed record, or undefined when it has changed or gone since `seen` was read: read again and decide again. */
  update(seen: ServiceRecord, change: Change<ServiceRecord>, event?: NewEvent): Promise<ServiceRecord | undefined>;
  /** Removes the service, its versions and its replicas; its events stay. Gone already is success. */
  remove(name: string, key: string, event: NewEvent): Promise<void>;
  version(name: string, version: number): Promise<VersionRecord | undefined>;
}

/** Replicas of all services; ids count within a service. */
export interface ReplicaRepository {
  list(service: string): Promise<readonly ReplicaRecord[]>;
  /** Adds a replica and moves the service's `nextReplicaId` past it; undefined when the service has changed since `seen`. */
  add(seen: ServiceRecord, replica: ReplicaRecord, event: NewEvent): Promise<ServiceRecord | undefined>;
  update(seen: ReplicaRecord, change: Change<ReplicaRecord>, event?: NewEvent): Promise<ReplicaRecord | undefined>;
  /** Drops records of ended replicas beyond the newest `keep` of a service, so that a long crash loop does not grow without bound. */
  prune(service: string, keep: number): Promise<void>;
}

/** The history: only appended to. */
export interface EventRepository {
  append(event: NewEvent): Promise<void>;
  /** Oldest first. Without `subjectKey`: of the newest subject of that name. `after` is an event id. */
  list(query: {
    readonly subject: string;
    readonly subjectKey?: string;
    readonly after?: number;
    readonly limit?: number;
  }): Promise<readonly EventRecord[]>;
}

/** Clusters and their jobs. */
export interface ClusterRepository {
  list(): Promise<readonly ClusterRecord[]>;
  get(name: string): Promise<ClusterRecord | undefined>;
  /** SVC_NAME_IN_USE when the name is taken. */
  add(cluster: ClusterRecord, event: NewEvent): Promise<void>;
  update(seen: ClusterRecord, change: Change<ClusterRecord>, event?: NewEvent): Promise<ClusterRecord | undefined>;
  remove(name: string, key: string, event: NewEvent): Promise<void>;
  jobs(cluster: string): Promise<readonly JobRecord[]>;
  /** Adds a job with the next id and gives it back. */
  addJob(job: Omit<JobRecord, 'id' | 'revision'>): Promise<JobRecord>;
  updateJob(seen: JobRecord, change: Change<JobRecord>): Promise<JobRecord | undefined>;
}

/** Folders of services and clusters, each a manifest and the blocks that it names. */
export interface FileRepository {
  /** Keys of all that have something here. */
  owners(): Promise<readonly string[]>;
  /** Manifests by their names. */
  trees(owner: string): Promise<ReadonlyMap<string, string>>;
  /** One manifest. */
  tree(owner: string, name: string): Promise<string | undefined>;
  /** Which blocks are here, by the SHA-256 of their content. */
  blocks(owner: string): Promise<ReadonlySet<string>>;
  block(owner: string, sha256: string): Promise<Uint8Array | undefined>;
  /** There already is success. */
  addBlock(owner: string, sha256: string, content: Uint8Array): Promise<void>;
  /** After the blocks: a manifest that is here is complete. */
  setTree(owner: string, name: string, manifest: string): Promise<void>;
  remove(owner: string): Promise<void>;
}

/** The lease of the controllers that share this database; see `domain/leadership.ts`. */
export interface LeadershipRepository {
  read(): Promise<LeaseView>;
  /** Of its holder; undefined when somebody wrote since `seen`. */
  renew(seen: LeaseView, durationMs: number): Promise<LeaseView | undefined>;
  /** By another one than its holder: with the next term. */
  take(seen: LeaseView, holder: string, durationMs: number): Promise<LeaseView | undefined>;
  /** Raises the term for a leader whose lease is kept elsewhere; false when `from` is not the newest one any more. From then on lower ones are refused. */
  claim(from: number, term: number): Promise<boolean>;
}
