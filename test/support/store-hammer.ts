import { writeSync } from 'node:fs';
import { systemClock } from '../../src/shared/clock.ts';
import { envVar } from '../../src/shared/env.ts';
import { SvcError } from '../../src/shared/errors.ts';
import { openStore } from '../../src/store/open-store.ts';
import type { Store } from '../../src/store/store.ts';
import { aReplica, aService, aVersion } from './builders.ts';
import { anEvent } from './stores.ts';

/**
 * A process that writes to a store as fast as it can, for tests that run several at once:
 *   store-hammer.ts PATH WORKER compete TIMES   adds services, changes and replicas; prints what it achieved as JSON
 *   store-hammer.ts PATH WORKER count           counts up a service's version for ever; prints each number once it is saved
 * With SVC_DATABASE in its environment it uses that instead of the file PATH.
 */
export interface HammerReport {
  /** Error codes of the services that could not be added. */
  readonly refused: readonly string[];
  readonly changes: number;
  readonly replicaIds: readonly number[];
}

const [path = '', worker = '', mode = '', times = '0'] = process.argv.slice(2);
const serviceLimit = 3;

async function addServices(store: Store): Promise<readonly string[]> {
  const refused: string[] = [];
  for (let index = 0; index < 6; index += 1) {
    // All workers compete for the name "chat" and the same few ports.
    const name = index === 0 ? 'chat' : `s-${worker}-${index}`;
    try {
      await store.services.add(
        aService({ name, port: 30_000 + (index % 4) }),
        aVersion({ service: name }),
        anEvent({ subject: name }),
        serviceLimit,
      );
    } catch (error) {
      if (!(error instanceof SvcError)) throw error;
      refused.push(error.code);
    }
  }
  return refused;
}

/** Retries one change until no other writer came between its read and its write. */
async function changeService(store: Store, cause: string): Promise<number> {
  for (;;) {
    const seen = await store.services.get('chat');
    if (seen === undefined) throw new Error('the service is gone');
    const changed = await store.services.update(seen, { version: seen.version + 1 }, anEvent({ cause }));
    if (changed !== undefined) return changed.version;
  }
}

async function addReplica(store: Store): Promise<number> {
  for (;;) {
    const seen = await store.services.get('chat');
    if (seen === undefined) throw new Error('the service is gone');
    const id = seen.nextReplicaId;
    if ((await store.replicas.add(seen, aReplica({ id, key: `${worker}-${id}` }), anEvent({ cause: 'added' }))) !== undefined) return id;
  }
}

const store = await openStore({ path, database: envVar('SVC_DATABASE'), clock: systemClock });
if (mode === 'count') {
  for (;;) writeSync(1, `${await changeService(store, 'changed')}\n`);
}
const refused = await addServices(store);
const replicaIds: number[] = [];
for (let index = 0; index < Number(times); index += 1) {
  await changeService(store, 'changed');
  replicaIds.push(await addReplica(store));
}
await store.close();
const report: HammerReport = { refused, changes: Number(times), replicaIds };
writeSync(1, JSON.stringify(report));
