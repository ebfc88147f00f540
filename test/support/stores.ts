import { join } from 'node:path';
import { systemClock } from '../../src/shared/clock.ts';
import { openStore, type StoreOptions } from '../../src/store/open-store.ts';
import type { NewEvent } from '../../src/domain/records.ts';
import type { Store } from '../../src/store/store.ts';
import type { Tool } from './needs.ts';
import { newSchema } from './postgres.ts';
import { withTempHome } from './temp-home.ts';

/** A database on which the store's tests run. */
export interface StoreDriver {
  readonly name: string;
  /** The programs that its tests need. */
  readonly tools: readonly Tool[];
  /**
   * Creates an empty database, in this folder or on a server. Returns the options of `openStore`, which any number of
   * processes can use.
   */
  make(home: string): Promise<Pick<StoreOptions, 'path' | 'database'>>;
}

/** Every database: all of them pass the same tests. */
export const storeDrivers: readonly StoreDriver[] = [
  { name: 'sqlite', tools: [], make: async (home) => ({ path: join(home, 'state.db') }) },
  { name: 'postgres', tools: ['postgres'], make: async (home) => ({ path: join(home, 'unused.db'), database: await newSchema() }) },
];

/** Runs `use` with an empty store and removes it afterwards. `reopen` returns another connection to the same data. */
export async function withStore<Result>(
  driver: StoreDriver,
  use: (store: Store, reopen: () => Promise<Store>) => Promise<Result>,
): Promise<Result> {
  return withTempHome(async (home) => {
    const options = await driver.make(home);
    const open: Store[] = [];
    const reopen = async (): Promise<Store> => {
      const store = await openStore({ ...options, clock: systemClock });
      open.push(store);
      return store;
    };
    try {
      return await use(await reopen(), reopen);
    } finally {
      await Promise.all(open.map((store) => store.close()));
    }
  });
}

/** An event of the service that `aService` builds. */
export function anEvent(change: Partial<NewEvent> = {}): NewEvent {
  return {
    at: 1_000,
    subject: 'chat',
    subjectKey: '0a1b2c3d',
    replicaId: null,
    from: null,
    to: null,
    cause: 'test',
    message: 'It happened.',
    ...change,
  };
}
