import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { aReplica, aService, aVersion } from './builders.ts';
import { FakeClock } from './fake-clock.ts';
import { memoryStore } from './memory-store.ts';
import { anEvent } from './stores.ts';
import { pick } from '../simulation/scenario.ts';
import { openStore } from '../../src/store/open-store.ts';
import type { Store } from '../../src/store/store.ts';
import { seededRandom } from '../../src/shared/random.ts';

/** What random calls return, some of them with outdated records, and the records after each. */
async function callsOf(store: Store): Promise<readonly unknown[]> {
  const random = seededRandom(7);
  const returned: unknown[] = [];
  let seen = aService({ revision: 0 });
  await store.services.add(seen, aVersion(), anEvent(), 1);
  for (let step = 0; step < 300; step += 1) {
    if (random() < 0.8) seen = (await store.services.get('chat')) ?? seen;
    const listed = await store.replicas.list('chat');
    const [replica = aReplica(), id] = [listed[Math.floor(random() * listed.length)], seen.nextReplicaId];
    const state = pick(random, ['READY', 'FAILED', 'TERMINATED'] as const);
    const changed = [{ replica, change: { state }, event: anEvent({ replicaId: replica.id }) }];
    const added = [{ replica: aReplica({ id, key: `k${id}`, revision: 0 }), event: anEvent({ replicaId: id }) }];
    const calls: readonly (() => Promise<unknown>)[] = [
      () => store.services.update(seen, { reason: `step ${step}` }, anEvent()),
      () =>
        store.services.commit(seen, { change: { firstReadyAt: step }, events: [anEvent()], changed: random() < 0.5 ? changed : [], added }),
      () => store.replicas.update(replica, { reason: `step ${step}` }, anEvent({ replicaId: replica.id })),
      () => store.services.addVersion(seen, { version: seen.version + 1 }, aVersion({ version: seen.version + 1 }), anEvent()),
      () => store.replicas.add(seen, aReplica({ id, key: `k${id}` }), anEvent({ replicaId: id })),
      () => store.replicas.prune('chat', 5),
    ];
    returned.push(await pick(random, calls)(), await store.services.get('chat'), await store.replicas.list('chat'));
  }
  returned.push(await store.services.versions('chat'), await store.events.list({ subject: 'chat', after: 5, limit: 200 }));
  returned.push(
    await store.events.knows('0a1b2c3d', 3),
    await store.events.knows('0a1b2c3d', 9_999),
    await store.services.get('chat', 'other'),
  );
  await store.services.remove('chat', '0a1b2c3d', anEvent());
  return [...returned, await store.services.list(), await store.replicas.list('chat'), await store.events.list({ subject: 'chat' })];
}

test('the store in memory answers random calls as SQLite does', async () => {
  const home = mkdtempSync(join(tmpdir(), 'svc-sim-'));
  const sqlite = await openStore({ path: join(home, 'state.db'), clock: new FakeClock() });
  try {
    expect(await callsOf(memoryStore())).toEqual(await callsOf(sqlite));
  } finally {
    await sqlite.close();
    rmSync(home, { recursive: true });
  }
});
