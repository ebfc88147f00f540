import { expect, test } from 'vitest';
import { aReplica, aService, aVersion } from '../../test/support/builders.ts';
import { describeStores } from '../../test/support/describe-stores.ts';
import { anEvent, withStore } from '../../test/support/stores.ts';
import type { ReplicaRecord, ServiceRecord } from '../domain/records.ts';
import type { Store } from './store.ts';

async function addReplica(store: Store, seen: ServiceRecord, change: Partial<ReplicaRecord> = {}): Promise<ServiceRecord> {
  const replica = aReplica({ id: seen.nextReplicaId, key: `key-${seen.nextReplicaId}`, ...change });
  const changed = await store.replicas.add(seen, replica, anEvent({ replicaId: replica.id }));
  if (changed === undefined) throw new Error('the service has changed meanwhile');
  return changed;
}

async function addService(store: Store): Promise<ServiceRecord> {
  const service = aService();
  await store.services.add(service, aVersion(), anEvent(), 16);
  return service;
}

describeStores('replicas', (driver) => {
  test("adding a replica raises the service's next id in one transaction with its event", async () => {
    await withStore(driver, async (store) => {
      const service = await addService(store);
      const after = await addReplica(store, service);
      expect(after).toEqual({ ...service, nextReplicaId: 2, revision: 2 });
      expect(await store.services.get('chat')).toEqual(after);
      expect(await store.replicas.list('chat')).toEqual([aReplica({ key: 'key-1' })]);
      expect((await store.events.list({ subject: 'chat' })).map(({ replicaId }) => replicaId)).toEqual([null, 1]);
    });
  });

  test('adding a replica with an outdated service record is refused', async () => {
    await withStore(driver, async (store) => {
      const service = await addService(store);
      await addReplica(store, service);
      expect(await store.replicas.add(service, aReplica(), anEvent())).toBeUndefined();
      expect(await store.replicas.list('chat')).toHaveLength(1);
      expect(await store.events.list({ subject: 'chat' })).toHaveLength(2);
    });
  });

  test('an id is never reused, even after its record was removed', async () => {
    await withStore(driver, async (store) => {
      const after = await addReplica(store, await addService(store), { state: 'FAILED' });
      await store.replicas.prune('chat', 0);
      await expect(store.replicas.add(after, aReplica({ id: 1 }), anEvent())).rejects.toThrow(
        'replica id 1 of "chat" has been used; the next is 2',
      );
    });
  });

  test('an unused lower id can be added without changing the next id', async () => {
    await withStore(driver, async (store) => {
      const after = await addReplica(store, await addService(store), { id: 7 });
      expect(await addReplica(store, after, { id: 6, key: 'key-6' })).toMatchObject({ nextReplicaId: 8 });
      expect((await store.replicas.list('chat')).map(({ id }) => id)).toEqual([6, 7]);
    });
  });

  test('every field can be changed and read back', async () => {
    await withStore(driver, async (store) => {
      await addReplica(store, await addService(store));
      const [seen] = await store.replicas.list('chat');
      if (seen === undefined) throw new Error('no replica');
      const changed: ReplicaRecord = {
        ...seen,
        version: 3,
        state: 'NOT_READY',
        offer: { provider: 'aws', region: 'r', zone: 'z', instanceType: 'i', resources: '1x', gpus: 0, spot: true, hourlyUsd: 0.1 },
        machineId: 'm',
        address: { kind: 'unix', path: '/run/x.sock', port: 8080 },
        createdAt: 11,
        launchedAt: 12,
        startedAt: 13,
        firstReadyAt: 14,
        readySince: 15,
        firstProbeFailureAt: 16,
        endCause: 'preempted',
        reason: 'It was taken away.',
        endRequestedAt: 17,
        endedAt: 18,
        revision: 2,
      };
      expect(await store.replicas.update(seen, changed, anEvent({ cause: 'changed' }))).toEqual(changed);
      expect(await store.replicas.list('chat')).toEqual([changed]);
      await store.replicas.update(changed, { address: { kind: 'tcp', host: '10.0.0.1', port: 1 }, offer: null });
      expect(await store.replicas.list('chat')).toEqual([
        { ...changed, address: { kind: 'tcp', host: '10.0.0.1', port: 1 }, offer: null, revision: 3 },
      ]);
      expect((await store.events.list({ subject: 'chat' })).at(-1)?.cause).toBe('changed');
    });
  });

  test('of two changes from the same state only the first is kept', async () => {
    await withStore(driver, async (store, reopen) => {
      await addReplica(store, await addService(store));
      const [seen] = await store.replicas.list('chat');
      if (seen === undefined) throw new Error('no replica');
      const other = await reopen();
      expect(await store.replicas.update(seen, { state: 'SHUTTING_DOWN' })).toMatchObject({ revision: 2 });
      expect(await other.replicas.update(seen, { state: 'READY' }, anEvent({ cause: 'late' }))).toBeUndefined();
      expect(await store.replicas.list('chat')).toMatchObject([{ state: 'SHUTTING_DOWN' }]);
      expect((await store.events.list({ subject: 'chat' })).some(({ cause }) => cause === 'late')).toBe(false);
    });
  });

  test('a change does not affect the same id of a later service', async () => {
    await withStore(driver, async (store) => {
      const service = await addService(store);
      await addReplica(store, service, { key: 'old' });
      const [seen] = await store.replicas.list('chat');
      if (seen === undefined) throw new Error('no replica');
      await store.services.remove('chat', service.key, anEvent());
      await addReplica(store, await addService(store), { key: 'new' });
      expect(await store.replicas.update(seen, { state: 'FAILED' })).toBeUndefined();
      expect(await store.replicas.list('chat')).toMatchObject([{ key: 'new', state: 'PENDING' }]);
    });
  });

  test('pruning removes only the oldest ended replicas', async () => {
    await withStore(driver, async (store) => {
      let service = await addService(store);
      const states = ['FAILED', 'READY', 'TERMINATED', 'FAILED_CLEANUP', 'PREEMPTED', 'SHUTTING_DOWN', 'FAILED_PROBING'] as const;
      for (const state of states) service = await addReplica(store, service, { state });
      await store.replicas.prune('other', 0);
      await store.replicas.prune('chat', 2);
      expect((await store.replicas.list('chat')).map(({ id }) => id)).toEqual([2, 4, 5, 6, 7]);
      await store.replicas.prune('chat', 0);
      expect((await store.replicas.list('chat')).map(({ id }) => id)).toEqual([2, 4, 6]);
    });
  });
});
