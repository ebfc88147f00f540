import { writeSync } from 'node:fs';
import { keepLease } from '../../src/controller/leadership/keep-lease.ts';
import { systemClock } from '../../src/shared/clock.ts';
import { envVar } from '../../src/shared/env.ts';
import { SvcError } from '../../src/shared/errors.ts';
import { databaseLease } from '../../src/store/database-lease.ts';
import { openStore } from '../../src/store/open-store.ts';
import { anEvent } from './stores.ts';

/**
 * A controller that acquires the lease in the database. As leader it writes events with its term as fast as the
 * database permits: `term-writer.ts PATH NAME`. Only the database stops its writes. It prints `stands by` once it has
 * seen another leader, `leads TERM`, and `refused CODE` before it exits. With SVC_DATABASE in its environment it uses
 * that instead of the file PATH.
 */

const [path = '', name = ''] = process.argv.slice(2);
const storeOptions = { path, database: envVar('SVC_DATABASE'), clock: systemClock };
let isStandby = false;
function reportStandby(): void {
  if (!isStandby) writeSync(1, 'stands by\n');
  isStandby = true;
}

const elected = Promise.withResolvers<number>();
const lease = await openStore(storeOptions);
void keepLease(
  {
    lock: databaseLease(lease),
    self: `${name}_${process.pid}`,
    clock: systemClock,
    held: (term) => elected.resolve(term),
    otherLeads: reportStandby,
    failed: () => undefined,
  },
  new AbortController().signal,
);
const term = await elected.promise;
const store = await openStore({ ...storeOptions, term });
await store.raiseTerm(term);
writeSync(1, `leads ${term}\n`);
try {
  for (;;) await store.events.append(anEvent({ at: systemClock.now(), subject: 'terms', cause: String(term) }));
} catch (error) {
  writeSync(1, `refused ${error instanceof SvcError ? error.code : String(error)}\n`);
}
process.exit(0);
