import { sql } from 'kysely';
import type { Clock } from '../shared/clock.ts';
import { SvcError } from '../shared/errors.ts';
import { randomHex } from '../shared/hex.ts';
import { clusterRepository } from './cluster-repository.ts';
import { ownSpaceBytes, type Driver } from './driver.ts';
import { eventRepository } from './event-repository.ts';
import { fileRepository } from './file-repository.ts';
import { leadershipRepository, TermGuard } from './leadership-repository.ts';
import { migrate } from './migrate.ts';
import { migrations } from './migrations/all.ts';
import { replicaRepository } from './replica-repository.ts';
import { serviceRepository } from './service-repository.ts';
import { openSqlite } from './sqlite-driver.ts';
import type { Store } from './store.ts';
import { zoneRepository } from './zone-repository.ts';

/** Options for opening a store. */
export interface StoreOptions {
  /** Absolute path. File and folder are created when missing, for this user only. Not used with `database`. */
  readonly path: string;
  /** `postgres://…`: keeps the state in that database instead. */
  readonly database?: string | undefined;
  readonly clock: Clock;
  /** The leader's term (fencing token): writes fail once a later one exists. undefined: no check until `raiseTerm`. */
  readonly term?: number | undefined;
  /** Whether this process may accept a database file that replaced the former one; see `openSqlite`. Default: true. */
  readonly mayAcceptReplacedFile?: boolean;
  /** Frees some space on a full disk and returns whether it did; see `openSqlite`. */
  readonly makeSpace?: () => boolean;
}

/**
 * Opens the state database and updates its schema. Throws SVC_HOME_UNUSABLE, SVC_STATE_CORRUPT, SVC_STATE_BUSY,
 * SVC_STATE_REPLACED, SVC_NO_SPACE, SVC_VERSION_MISMATCH (a newer svc has used it); for PostgreSQL also
 * SVC_INVALID_CONFIG, SVC_DATABASE and SVC_DATABASE_REFUSED. Methods of the repositories also throw SVC_NOT_LEADER.
 */
export async function openStore({ path, database, clock, term, mayAcceptReplacedFile, makeSpace }: StoreOptions): Promise<Store> {
  if (database === undefined) return createStore(await openSqlite(path, clock, mayAcceptReplacedFile, makeSpace), clock, term);
  // pg takes a while to load, and most users never need it.
  const { openPostgres } = await import('./postgres/postgres-driver.ts');
  return createStore(await openPostgres(database, clock), clock, term);
}

/** Makes a store on an open driver and updates the schema. `close`, or a failure here, closes the driver. */
export async function createStore(driver: Driver, clock: Clock, term?: number): Promise<Store> {
  try {
    await migrate(driver, migrations, clock);
    await identify(driver, clock);
  } catch (error) {
    await driver.close();
    throw error;
  }
  const guard = new TermGuard(term);
  const guarded = guard.guard(counting(driver));
  return {
    isShared: driver.isShared,
    services: serviceRepository(guarded),
    replicas: replicaRepository(guarded),
    events: eventRepository(guarded),
    clusters: clusterRepository(guarded),
    zones: zoneRepository(guarded),
    files: fileRepository(guarded),
    leadership: leadershipRepository(driver),
    file: driver.file,
    async restoredAt() {
      const row = await driver.db.selectFrom('database_identity').select('restored_at').executeTakeFirst();
      return row?.restored_at ?? null;
    },
    async keepOwnSpace() {
      if ((await driver.hasOwnSpace?.()) ?? true) return;
      await guarded.write(async (writer) => {
        // The file keeps the freed pages and the log keeps its length, so later writes succeed even on a full disk.
        await sql`create table own_space (content blob)`.execute(writer);
        await sql`insert into own_space values (zeroblob(${ownSpaceBytes}))`.execute(writer);
        await sql`drop table own_space`.execute(writer);
      });
    },
    async copyTo(copy) {
      if (driver.copyTo === undefined) {
        throw new SvcError('SVC_BACKUP_REFUSED', 'PostgreSQL keeps the state of this controller, and the files of services with it.', {
          hint: 'Back up that database: pg_dump. docs/high-availability.md says how to restore it.',
        });
      }
      await driver.copyTo(copy);
    },
    raiseTerm: (newTerm) => guard.raise(driver, newTerm),
    // A replaced file stays open until the process ends: closing it would make SQLite write the log into the new file.
    close: async () => (driver.file?.isReplaced === true ? undefined : driver.close()),
  };
}

const identityRow = 'state';

/** Replica ids skipped per service after a restore: machines launched after the backup may still have them. */
export const idsLeftAfterRestore = 1_000;

/** Gives a new database its identity, with which the file is compared. After a restore, also skips replica ids. */
async function identify(driver: Driver, clock: Clock): Promise<void> {
  const { db, file } = driver;
  if (file === undefined) return;
  await driver.write(async (writer) => {
    await writer
      .insertInto('database_identity')
      .values({ name: identityRow, id: randomHex(16), changes: 0, restored_at: null })
      .onConflict((conflict) => conflict.doNothing())
      .execute();
    const isOlder = file.replaced !== undefined;
    await writer
      .updateTable('database_identity')
      .set((columns) => ({ changes: columns('changes', '+', 1), ...(isOlder && { restored_at: clock.now() }) }))
      .execute();
    if (!isOlder) return;
    await writer
      .updateTable('services')
      .set((columns) => ({
        next_replica_id: columns('next_replica_id', '+', idsLeftAfterRestore),
        revision: columns('revision', '+', 1),
      }))
      .execute();
  });
  const { id } = await db.selectFrom('database_identity').select('id').executeTakeFirstOrThrow();
  await file.begin(id, () => sql`pragma wal_checkpoint(passive)`.execute(db));
}

/** Counts write transactions, which shows which copy of a database is older. Refuses writes to a replaced file. */
function counting(driver: Driver): Driver {
  const { file } = driver;
  if (file === undefined) return driver;
  return {
    ...driver,
    write: (work) =>
      driver.write(async (writer) => {
        file.assertCurrent();
        const result = await work(writer);
        await writer
          .updateTable('database_identity')
          .set((columns) => ({ changes: columns('changes', '+', 1) }))
          .execute();
        return result;
      }),
  };
}
