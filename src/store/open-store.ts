import type { Clock } from '../shared/clock.ts';
import { clusterRepository } from './cluster-repository.ts';
import type { Driver } from './driver.ts';
import { eventRepository } from './event-repository.ts';
import { migrate } from './migrate.ts';
import { migrations } from './migrations/all.ts';
import { replicaRepository } from './replica-repository.ts';
import { serviceRepository } from './service-repository.ts';
import { openSqlite } from './sqlite-driver.ts';
import type { Store } from './store.ts';

/** What a store is opened with. */
export interface StoreOptions {
  /** Absolute path of the database file; it and its folder are created when missing, for this user alone. */
  readonly path: string;
  readonly clock: Clock;
}

/**
 * Opens the state database and brings its schema up to date. Throws SVC_HOME_UNUSABLE, SVC_STATE_CORRUPT, SVC_STATE_BUSY, SVC_NO_SPACE, or
 * SVC_VERSION_MISMATCH when a newer version of svc has used it; each repository's methods throw the middle three too.
 */
export async function openStore({ path, clock }: StoreOptions): Promise<Store> {
  return createStore(await openSqlite(path, clock), clock);
}

/** A store over an open driver, which it closes in the end, also when it cannot be used. */
export async function createStore(driver: Driver, clock: Clock): Promise<Store> {
  try {
    await migrate(driver, migrations, clock);
  } catch (error) {
    await driver.close();
    throw error;
  }
  return {
    services: serviceRepository(driver),
    replicas: replicaRepository(driver),
    events: eventRepository(driver),
    clusters: clusterRepository(driver),
    close: () => driver.close(),
  };
}
