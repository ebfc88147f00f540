import type { Generated } from 'kysely';
import type { EndCause, ReplicaState } from '../domain/replica/replica-state.ts';
import type { ServiceState } from '../domain/service-state.ts';
import type { ClusterRecord, JobRecord, ReplicaRecord, ServiceRecord } from '../domain/records.ts';

/** JSON text of `json-column.ts`, not a JSON type: all databases store text alike. */
type Json = string;

/** 0 or 1, as SQLite has no booleans. */
type Flag = number;

/** Columns of `services`. Times are ms since the epoch here and below. */
export interface ServiceTable {
  name: string;
  key: string;
  state: ServiceState;
  desired: ServiceRecord['desired'];
  purge: Flag;
  host: string;
  port: number;
  version: number;
  created_at: number;
  first_ready_at: number | null;
  reason: string | null;
  next_replica_id: number;
  memory: Json;
  reconciler: Json | null;
  balancer: Json | null;
  processes_failed: Flag;
  revision: number;
}

/** Versions of services. */
export interface VersionTable {
  service: string;
  version: number;
  task: Json;
  source: string;
  created_at: number;
}

/** Columns of `replicas`. */
export interface ReplicaTable {
  service: string;
  id: number;
  version: number;
  state: ReplicaState;
  market: ReplicaRecord['market'];
  key: string;
  place: Json | null;
  machine_id: string | null;
  address: Json | null;
  created_at: number;
  launched_at: number | null;
  started_at: number | null;
  first_ready_at: number | null;
  ready_since: number | null;
  first_probe_failure_at: number | null;
  end_cause: EndCause | null;
  reason: string | null;
  end_requested_at: number | null;
  ended_at: number | null;
  revision: number;
}

/** Columns of `events`; `from` and `to` are reserved words of SQL. */
export interface EventTable {
  id: Generated<number>;
  at: number;
  subject: string;
  subject_key: string;
  replica_id: number | null;
  from_state: string | null;
  to_state: string | null;
  cause: string;
  message: string;
}

/** Columns of `clusters`. */
export interface ClusterTable {
  name: string;
  key: string;
  state: ClusterRecord['state'];
  machine_key: string;
  machine_id: string | null;
  place: Json | null;
  created_at: number;
  reason: string | null;
  revision: number;
}

/** Columns of `jobs`. */
export interface JobTable {
  cluster: string;
  id: number;
  state: JobRecord['state'];
  task: Json;
  created_at: number;
  started_at: number | null;
  ended_at: number | null;
  exit_code: number | null;
  revision: number;
}

/** Columns of `migrations`: the schema steps that this database has. */
interface MigrationTable {
  version: number;
  name: string;
  applied_at: number;
}

/** Columns of `leadership`; see `domain/leadership.ts`. One row, named `controller`. */
export interface LeadershipTable {
  name: string;
  holder: string | null;
  term: number;
  renewal: number;
  duration_ms: number;
}

/** Columns of `file_trees`: folders on the disk of the present leader that the next leader needs. */
interface FileTreeTable {
  /** Key of a service or a cluster. */
  owner: string;
  name: string;
  manifest: string;
}

/** The content of one owner's trees, each block once. */
interface FileBlockTable {
  owner: string;
  sha256: string;
  content: Uint8Array;
}

/** What is known of a spot zone; see `domain/spot/zone-history.ts`. */
interface ZoneHistoryTable {
  zone: string;
  history: Json;
}

/** One row, named `state`. */
interface DatabaseIdentityTable {
  name: string;
  id: string;
  /** Number of write transactions so far. */
  changes: number;
  /** When an older copy of this database last replaced a newer one, ms. */
  restored_at: number | null;
}

/** All tables after the newest migration. */
export interface Schema {
  services: ServiceTable;
  versions: VersionTable;
  replicas: ReplicaTable;
  events: EventTable;
  clusters: ClusterTable;
  jobs: JobTable;
  leadership: LeadershipTable;
  file_trees: FileTreeTable;
  file_blocks: FileBlockTable;
  zone_histories: ZoneHistoryTable;
  migrations: MigrationTable;
  database_identity: DatabaseIdentityTable;
}
