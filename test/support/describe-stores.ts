import { afterAll, describe } from 'vitest';
import { needs } from './needs.ts';
import { closeSharedPostgres } from './postgres.ts';
import { storeDrivers, type StoreDriver } from './stores.ts';

/** Defines the same tests for every database available on this machine. */
export function describeStores(title: string, body: (driver: StoreDriver) => void): void {
  for (const driver of storeDrivers) {
    needs(driver.tools, () => {
      describe(`${title} in ${driver.name}`, () => {
        afterAll(closeSharedPostgres);
        body(driver);
      });
    });
  }
}
