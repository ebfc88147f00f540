import type { ColumnDefinitionBuilder, Kysely, Transaction } from 'kysely';
import type { Schema } from './schema.ts';

/** A transaction that has the database to itself for writing. */
export type Writer = Transaction<Schema>;

/**
 * What the repositories need of a database. Queries are kysely's and the same for every database; what differs is here, most of it as data.
 *
 * Whatever runs a query may throw `SvcError`: SVC_STATE_BUSY (others kept it locked for too long), SVC_NO_SPACE, SVC_STATE_CORRUPT,
 * SVC_HOME_UNUSABLE; and over a network SVC_DATABASE (it is away, also after waiting for it) and SVC_DATABASE_REFUSED. Integers come back as numbers,
 * which is exact up to 2^53.
 */
export interface Driver {
  readonly name: 'sqlite' | 'postgres';
  /** Whether processes of other machines may have it open too. */
  readonly isShared: boolean;
  /** For single statements and reads; each sees only committed data. */
  readonly db: Kysely<Schema>;
  /**
   * Runs `work` in one transaction, as if no other writer existed: what it reads stays true until it has committed. All or nothing: what
   * `work` throws, or a crash at any point, leaves the database as it was. Await nothing but the writer's queries inside, as all other
   * writers wait for it, and nothing else has effects: it is run again when the database went away before the commit. Durable once
   * resolved, also through a loss of power.
   */
  write<Result>(work: (writer: Writer) => Promise<Result>): Promise<Result>;
  /** The type of columns that `selfCounting` makes. */
  readonly counterType: 'integer' | 'bigint';
  /** The type of columns that hold bytes. */
  readonly binaryType: 'blob' | 'bytea';
  /** Makes a column the primary key that counts up by itself and never gives a number twice. */
  selfCounting(column: ColumnDefinitionBuilder): ColumnDefinitionBuilder;
  close(): Promise<void>;
}
