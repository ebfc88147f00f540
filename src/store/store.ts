import type { LeaseView } from '../domain/leadership.ts';
import type { ZoneHistories } from '../domain/spot/zone-history.ts';
import type { DatabaseFile } from './database-file.ts';
import type {
  Change,
  ClusterRecord,
  EventRecord,
  JobRecord,
  NewEvent,
  ReplicaRecord,
  ServiceRecord,
  VersionRecord,
} from '../domain/records.ts';

/**
 * The persistent state. The daemon and each service's reconciler use one database at once. So every change checks the
 * revision that was read (compare-and-set), and one transaction writes it with its event.
 */
export interface Store {
  /** Whether controllers on other machines may have it open. Then `files` also holds the files that they need. */
  readonly isShared: boolean;
  readonly services: ServiceRepository;
  readonly replicas: ReplicaRepository;
  readonly events: EventRepository;
  readonly clusters: ClusterRepository;
  readonly zones: ZoneRepository;
  readonly files: FileRepository;
  readonly leadership: LeadershipRepository;
  /** The file on this machine, which detects its replacement; undefined for a database server. */
  readonly file: DatabaseFile | undefined;
  /** When another state of the database, such as an older copy, last replaced the one in use, ms; null if never. */
  restoredAt(): Promise<number | null>;
  /** Sets the term, this leader's fencing token. A higher one in the database: SVC_NOT_LEADER, here and for writes. */
  raiseTerm(term: number): Promise<void>;
  /** Reserves space in the database files once, so changes succeed on a full disk. Call it every few seconds. */
  keepOwnSpace(): Promise<void>;
  /**
   * Writes a consistent copy of the database to a new file, with its seal, while others write. Whoever opens the copy
   * later treats it as restored. Throws SVC_BACKUP_REFUSED for a database server.
   */
  copyTo(path: string): Promise<void>;
  close(): Promise<void>;
}

interface ServiceCommit {
  readonly change: Change<ServiceRecord>;
  readonly events: readonly NewEvent[];
  readonly changed: readonly { readonly replica: ReplicaRecord; readonly change: Change<ReplicaRecord>; readonly event: NewEvent }[];
  /** New replicas with their first events. Their ids are the service's next ones. */
  readonly added: readonly { readonly replica: ReplicaRecord; readonly event: NewEvent }[];
}

/** The records that were written. */
export interface Committed {
  readonly service: ServiceRecord;
  readonly replicas: readonly ReplicaRecord[];
}

/** Histories of spot zones, shared by all services. Their number is bounded. */
export interface ZoneRepository {
  list(): Promise<ZoneHistories>;
  /** Reads, changes and writes in one transaction. Returns all histories afterwards. */
  change(decide: (all: ZoneHistories) => ZoneHistories, now: number): Promise<ZoneHistories>;
}

/** Services and the versions of their files. */
export interface ServiceRepository {
  list(): Promise<readonly ServiceRecord[]>;
  /** With a key: undefined when the name now belongs to another service. */
  get(name: string, key?: string): Promise<ServiceRecord | undefined>;
  /**
   * Adds a service with its first version and event in one transaction, so two concurrent calls cannot both pass.
   * Throws SVC_TOO_MANY_SERVICES (`limit` exist), SVC_NAME_IN_USE, or SVC_PORT_BUSY (another service has the port).
   */
  add(service: ServiceRecord, version: VersionRecord, event: NewEvent, limit: number): Promise<void>;
  /** The changed record; undefined when it has changed or was removed since `seen` was read: read and decide again. */
  update(seen: ServiceRecord, change: Change<ServiceRecord>, event?: NewEvent): Promise<ServiceRecord | undefined>;
  /** Commits in one transaction. Undefined, with nothing changed, if the service or a replica is no longer as read. */
  commit(seen: ServiceRecord, commit: ServiceCommit): Promise<Committed | undefined>;
  /** Removes the service, its versions and its replicas; its events stay. Succeeds if it is already removed. */
  remove(name: string, key: string, event: NewEvent): Promise<void>;
  version(name: string, version: number): Promise<VersionRecord | undefined>;
  /** All versions, oldest first. */
  versions(name: string): Promise<readonly VersionRecord[]>;
  /** Adds a version in one transaction with `change`. Undefined, with nothing added, if the service is no longer as read. */
  addVersion(
    seen: ServiceRecord,
    change: Change<ServiceRecord>,
    version: VersionRecord,
    event: NewEvent,
  ): Promise<ServiceRecord | undefined>;
}

/** Replicas of all services; ids count within a service. */
export interface ReplicaRepository {
  list(service: string): Promise<readonly ReplicaRecord[]>;
  /** Also raises `nextReplicaId`. Undefined when the service has changed. Throws when the id was ever used. */
  add(seen: ServiceRecord, replica: ReplicaRecord, event: NewEvent): Promise<ServiceRecord | undefined>;
  update(seen: ReplicaRecord, change: Change<ReplicaRecord>, event?: NewEvent): Promise<ReplicaRecord | undefined>;
  /** Removes ended replicas beyond the newest `keep`: a crash loop must not grow the database without bound. */
  prune(service: string, keep: number): Promise<void>;
}

/** The history of events: append-only, but for those of services and clusters that are gone. */
export interface EventRepository {
  append(event: NewEvent): Promise<void>;
  /** Whether the subject, or that replica of it, was ever recorded in this database: each has an event. */
  knows(subjectKey: string, replicaId?: number): Promise<boolean>;
  /** Events, oldest first. Without `subjectKey`: of the newest subject with that name. `after` is an event id. */
  list(query: {
    readonly subject: string;
    readonly subjectKey?: string;
    readonly after?: number;
    readonly limit?: number;
  }): Promise<readonly EventRecord[]>;
  /**
   * Removes events of services and clusters without a record: those from before `before`, ms, and those older than the
   * newest `keep`. Keeps all events of the subjects with the keys `except`. Returns their number.
   */
  pruneGone(bounds: { readonly before: number; readonly keep: number; readonly except: readonly string[] }): Promise<number>;
}

/** Clusters and their jobs. */
export interface ClusterRepository {
  list(): Promise<readonly ClusterRecord[]>;
  get(name: string): Promise<ClusterRecord | undefined>;
  /** Throws SVC_NAME_IN_USE when the name is taken. */
  add(cluster: ClusterRecord, event: NewEvent): Promise<void>;
  update(seen: ClusterRecord, change: Change<ClusterRecord>, event?: NewEvent): Promise<ClusterRecord | undefined>;
  remove(name: string, key: string, event: NewEvent): Promise<void>;
  jobs(cluster: string): Promise<readonly JobRecord[]>;
  addJob(job: Omit<JobRecord, 'id' | 'revision'>): Promise<JobRecord>;
  updateJob(seen: JobRecord, change: Change<JobRecord>): Promise<JobRecord | undefined>;
}

/** Folders of services and clusters: each is a manifest and the blocks that it lists. */
export interface FileRepository {
  owners(): Promise<readonly string[]>;
  trees(owner: string): Promise<ReadonlyMap<string, string>>;
  tree(owner: string, name: string): Promise<string | undefined>;
  /** SHA-256 of the stored blocks. */
  blocks(owner: string): Promise<ReadonlySet<string>>;
  block(owner: string, sha256: string): Promise<Uint8Array | undefined>;
  /** Succeeds if the block is already stored. */
  addBlock(owner: string, sha256: string, content: Uint8Array): Promise<void>;
  /** Call it after the blocks: a stored manifest is complete. */
  setTree(owner: string, name: string, manifest: string): Promise<void>;
  remove(owner: string): Promise<void>;
}

/** The lease of the controllers that share this database; see `domain/leadership.ts`. */
export interface LeadershipRepository {
  read(): Promise<LeaseView>;
  /** Renews the lease for its holder; undefined when another process wrote since `seen`. */
  renew(seen: LeaseView, durationMs: number): Promise<LeaseView | undefined>;
  /** Takes the lease for another holder, with the next term. */
  take(seen: LeaseView, holder: string, durationMs: number): Promise<LeaseView | undefined>;
  /** With a lease outside the database: raises the term; lower ones are refused. False: `from` is outdated. */
  claim(from: number, term: number): Promise<boolean>;
}
