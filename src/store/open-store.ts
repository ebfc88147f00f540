import type { Clock } from '../shared/clock.ts';
import { clusterRepository } from './cluster-repository.ts';
import type { Driver } from './driver.ts';
import { eventRepository } from './event-repository.ts';
import { fileRepository } from './file-repository.ts';
import { leadershipRepository } from './leadership-repository.ts';
import { migrate } from './migrate.ts';
import { migrations } from './migrations/all.ts';
import { replicaRepository } from './replica-repository.ts';
import { serviceRepository } from './service-repository.ts';
import { openSqlite } from './sqlite-driver.ts';
import type { Store } from './store.ts';
import { TermGuard } from './term-guard.ts';

/** What a store is opened with. */
export interface StoreOptions {
  /** Absolute path of the database file; it and its folder are created when missing, for this user alone. Not used with `database`. */
  readonly path: string;
  /** `postgres://…`: the state is there instead. */
  readonly database?: string | undefined;
  readonly clock: Clock;
  /** The term of the leader for which this process works: its writes are refused as soon as there is a later one. undefined: it has no rivals. */
  readonly term?: number | undefined;
}

/**
 * Opens the state database and brings its schema up to date. Throws SVC_HOME_UNUSABLE, SVC_STATE_CORRUPT, SVC_STATE_BUSY, SVC_NO_SPACE, or
 * SVC_VERSION_MISMATCH when a newer version of svc has used it; for PostgreSQL also SVC_INVALID_CONFIG, SVC_DATABASE and SVC_DATABASE_REFUSED. Each
 * repository's methods throw those too, and SVC_NOT_LEADER.
 */
export async function openStore({ path, database, clock, term }: StoreOptions): Promise<Store> {
  if (database === undefined) return createStore(await openSqlite(path, clock), clock, term);
  // pg takes a while to load, and most never need it.
  const { openPostgres } = await import('./postgres/postgres-driver.ts');
  return createStore(await openPostgres(database, clock), clock, term);
}

/** A store over an open driver, which it closes in the end, also when it cannot be used. */
export async function createStore(driver: Driver, clock: Clock, term?: number): Promise<Store> {
  try {
    await migrate(driver, migrations, clock);
  } catch (error) {
    await driver.close();
    throw error;
  }
  const guard = new TermGuard(term);
  const guarded = guard.guard(driver);
  return {
    isShared: driver.isShared,
    services: serviceRepository(guarded),
    replicas: replicaRepository(guarded),
    events: eventRepository(guarded),
    clusters: clusterRepository(guarded),
    files: fileRepository(guarded),
    leadership: leadershipRepository(driver),
    raiseTerm: (newTerm) => guard.raise(driver, newTerm),
    close: () => driver.close(),
  };
}
