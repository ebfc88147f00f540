import { join } from 'node:path';
import { systemClock } from '../../src/shared/clock.ts';
import { openStore } from '../../src/store/open-store.ts';
import type { NewEvent } from '../../src/store/records.ts';
import type { Store } from '../../src/store/store.ts';
import { withTempHome } from './temp-home.ts';

/** A database that the store's tests run over. */
export interface StoreDriver {
  readonly name: string;
  /** Opens the one store below a folder; more than once for several connections to the same data. */
  open(home: string): Promise<Store>;
}

/** Every database: all of them pass the same tests. */
export const storeDrivers: readonly StoreDriver[] = [
  { name: 'sqlite', open: (home) => openStore({ path: join(home, 'state.db'), clock: systemClock }) },
];

/** Runs `use` with an empty store and removes it afterwards. `reopen` gives another connection to the same data. */
export async function withStore<Result>(
  driver: StoreDriver,
  use: (store: Store, reopen: () => Promise<Store>) => Promise<Result>,
): Promise<Result> {
  return withTempHome(async (home) => {
    const open: Store[] = [];
    const reopen = async (): Promise<Store> => {
      const store = await driver.open(home);
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
