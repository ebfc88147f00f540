import { afterAll, describe } from 'vitest';
import { closeSharedPostgres } from './postgres.ts';
import { storeDrivers, type StoreDriver } from './stores.ts';

/** The same tests over every database. One that this machine does not have is skipped by name, with the reason. */
export function describeStores(title: string, body: (driver: StoreDriver) => void): void {
  for (const driver of storeDrivers) {
    const reason = driver.missing === undefined ? '' : ` (${driver.missing})`;
    describe.skipIf(driver.missing !== undefined)(`${title} in ${driver.name}${reason}`, () => {
      afterAll(closeSharedPostgres);
      body(driver);
    });
  }
}
