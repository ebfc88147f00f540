import type { ColumnDefinitionBuilder, Kysely, Transaction } from 'kysely';
import type { DatabaseFile } from './database-file.ts';
import type { Schema } from './schema.ts';

/** A write transaction with exclusive access to the database. */
export type Writer = Transaction<Schema>;

/**
 * The interface between repositories and a database. All databases run the same queries, written with kysely. Methods
 * that run a query may throw SVC_STATE_BUSY (other processes kept the lock for too long), SVC_NO_SPACE,
 * SVC_STATE_CORRUPT, SVC_HOME_UNUSABLE; over a network SVC_DATABASE (unreachable, even after waiting) and
 * SVC_DATABASE_REFUSED. Integers are numbers, exact up to 2^53.
 */
export interface Driver {
  readonly name: 'sqlite' | 'postgres';
  /** Whether processes on other machines may have the database open too. */
  readonly isShared: boolean;
  /** For single statements and reads. Each sees only committed data. */
  readonly db: Kysely<Schema>;
  /**
   * Runs `work` in one transaction, as if no other writer existed: its reads stay valid until the commit. If `work`
   * throws, or the process crashes, the database stays unchanged. A resolved change survives a loss of power.
   *
   * Inside `work`, await only the writer's queries: all other writers wait. Cause no other effects: `work` runs again
   * when the database was lost before the commit.
   */
  write<Result>(work: (writer: Writer) => Promise<Result>): Promise<Result>;
  readonly counterType: 'integer' | 'bigint';
  readonly binaryType: 'blob' | 'bytea';
  /** Makes a column an auto-increment primary key that never reuses a number. */
  selfCounting(column: ColumnDefinitionBuilder): ColumnDefinitionBuilder;
  /** The database file on this machine, which may be replaced while it is open. Absent for a server. */
  readonly file?: DatabaseFile;
  /** Whether the database files have reserved space for `ownSpaceBytes` of changes. Absent for a server. */
  hasOwnSpace?(): Promise<boolean>;
  /** Writes a consistent copy of the database to a new file while others write. Absent for a server. */
  copyTo?(path: string): Promise<void>;
  close(): Promise<void>;
}

/** Space reserved within the files of a database: enough for some thousand changes. */
export const ownSpaceBytes = 4_194_304;
