import { expect, test } from 'vitest';
import { aPlaceableOffer, aReplica, aService, aTask, aVersion } from '../../test/support/builders.ts';
import { describeStores } from '../../test/support/describe-stores.ts';
import { anEvent, withStore } from '../../test/support/stores.ts';
import type { ServiceRecord } from '../domain/records.ts';
import type { Store } from './store.ts';

const changedEverywhere: ServiceRecord = {
  name: 'chat',
  key: '0a1b2c3d',
  state: 'READY',
  desired: 'down',
  purge: true,
  host: '0.0.0.0',
  port: 31_000,
  version: 2,
  createdAt: 1_900_000_000_123,
  firstReadyAt: 1_900_000_000_456,
  reason: 'It said: "no".\nThen it ended — 終わり',
  nextReplicaId: 9,
  memory: {
    initialised: true,
    autoscaler: { target: 3, upCount: 1, downCount: 0 },
    failures: [{ at: 5, everReady: false, readyMs: 0, killed: true }],
    gaveUp: true,
  },
  reconciler: { pid: 12, startTicks: 345, bootId: 'b' },
  balancer: { pid: 13, startTicks: 346, bootId: 'b' },
  processesFailed: true,
  revision: 2,
};

async function addService(store: Store, change: Partial<ServiceRecord> = {}, limit = 16): Promise<ServiceRecord> {
  const service = aService(change);
  await store.services.add(
    service,
    aVersion({ service: service.name }),
    anEvent({ subject: service.name, subjectKey: service.key }),
    limit,
  );
  return service;
}

describeStores('services', (driver) => {
  test('an added service is read back, by another process and after a restart too', async () => {
    await withStore(driver, async (store, reopen) => {
      const service = await addService(store);
      expect(await store.services.get('chat')).toEqual(service);
      await store.close();
      const again = await reopen();
      expect(await again.services.list()).toEqual([service]);
      expect(await again.services.get('other')).toBeUndefined();
    });
  });

  test('a version is added together with the change of its service, or not at all', async () => {
    await withStore(driver, async (store) => {
      const service = await addService(store);
      const version = aVersion({ version: 2, task: aTask({ run: 'new', filesVersion: 1 }) });
      const event = anEvent({ cause: 'update' });
      const changed = await store.services.addVersion(service, { version: 2 }, version, event);
      expect(changed).toEqual({ ...service, version: 2, revision: service.revision + 1 });
      // The record was read before the first addition.
      expect(await store.services.addVersion(service, { version: 3 }, aVersion({ version: 3 }), event)).toBeUndefined();
      expect(await store.services.versions('chat')).toEqual([aVersion({}), version]);
      expect(await store.services.get('chat')).toEqual(changed);
      expect((await store.events.list({ subject: 'chat' })).filter(({ cause }) => cause === 'update')).toHaveLength(1);
      expect(await store.services.versions('other')).toEqual([]);
    });
  });

  test('every field can be changed and read back', async () => {
    await withStore(driver, async (store) => {
      const service = await addService(store);
      expect(await store.services.update(service, changedEverywhere)).toEqual(changedEverywhere);
      expect(await store.services.get('chat')).toEqual(changedEverywhere);
      const back = await store.services.update(changedEverywhere, { ...service, createdAt: 1 });
      expect(await store.services.get('chat')).toEqual({ ...service, createdAt: 1, revision: 3 });
      expect(back).toEqual(await store.services.get('chat'));
    });
  });

  test('a task stored by an earlier version is read under the current names', async () => {
    await withStore(driver, async (store) => {
      const task = aTask({ providerConfig: { kubernetes: { provisionTimeoutSeconds: 300 } } });
      const stored = JSON.parse(JSON.stringify(task).replace('"providerConfig"', '"placeConfig"'));
      await store.services.add(aService(), aVersion({ task: stored }), anEvent(), 16);
      expect((await store.services.version('chat', 1))?.task).toEqual(task);
    });
  });

  test("an earlier version's refusal by a whole provider is read under the current name", async () => {
    await withStore(driver, async (store) => {
      const offer = aPlaceableOffer({ provider: 'aws' });
      const refusal = { offer, kind: 'permission', scope: 'provider', count: 1, at: 1, until: 2, reason: '"scope":"place"' } as const;
      const memory = { ...aService().memory, placement: { refusals: [refusal], starts: [] } };
      const stored = JSON.parse(JSON.stringify(memory).replace('"scope":"provider"', '"scope":"place"'));
      await store.services.add(aService({ memory: stored }), aVersion(), anEvent(), 16);
      expect((await store.services.get('chat'))?.memory).toEqual(memory);
    });
  });

  test('a stored version without a newer setting of the balancer has its default', async () => {
    await withStore(driver, async (store) => {
      const task = aTask();
      const stored = JSON.parse(JSON.stringify(task).replace('"maxHeaderCount":100,', '').replace('"trustedProxies":[]', '"gone":1'));
      await store.services.add(aService(), aVersion({ task: stored }), anEvent(), 16);
      const read = (await store.services.version('chat', 1))?.task.service?.loadBalancer;
      expect(read).toMatchObject(JSON.parse(JSON.stringify(task.service?.loadBalancer)));
    });
  });

  test('a version keeps its task with all values, including unusual names', async () => {
    await withStore(driver, async (store) => {
      const task = aTask({
        envs: JSON.parse('{"__proto__":"x","constructor":"y","A B":"\\u0000é"}'),
        secrets: { TOKEN: 's3cret' },
        setup: 'true',
      });
      await store.services.add(aService(), aVersion({ task, source: 'run: |\n  true\n' }), anEvent(), 16);
      const version = await store.services.version('chat', 1);
      expect(JSON.stringify(version?.task)).toBe(JSON.stringify(task));
      expect(version).toMatchObject({ service: 'chat', version: 1, source: 'run: |\n  true\n', createdAt: 1_000 });
      expect(await store.services.version('chat', 2)).toBeUndefined();
      expect(await store.services.version('other', 1)).toBeUndefined();
    });
  });

  test('a used name, a used port and a full controller are refused without traces', async () => {
    await withStore(driver, async (store) => {
      await addService(store);
      await expect(addService(store, { key: 'ffffffff', port: 30_002 })).rejects.toMatchObject({ code: 'SVC_NAME_IN_USE' });
      await expect(addService(store, { name: 'b', key: 'ffffffff' })).rejects.toMatchObject({
        code: 'SVC_PORT_BUSY',
        message: 'Port 30001 belongs to the service "chat".',
      });
      await expect(addService(store, { name: 'b', port: 30_002 }, 1)).rejects.toMatchObject({
        code: 'SVC_TOO_MANY_SERVICES',
        message: 'The controller has 1 services; its machine allows 1.',
      });
      expect((await store.services.list()).map(({ name }) => name)).toEqual(['chat']);
      expect(await store.services.version('b', 1)).toBeUndefined();
      expect(await store.events.list({ subject: 'b' })).toEqual([]);
    });
  });

  test('of two changes from the same state only the first is kept', async () => {
    await withStore(driver, async (store, reopen) => {
      const seen = await addService(store);
      const other = await reopen();
      expect(await store.services.update(seen, { state: 'READY' }, anEvent({ cause: 'first' }))).toMatchObject({
        state: 'READY',
        revision: 2,
      });
      expect(await other.services.update(seen, { state: 'FAILED' }, anEvent({ cause: 'second' }))).toBeUndefined();
      expect(await other.services.get('chat')).toMatchObject({ state: 'READY', revision: 2 });
      expect((await store.events.list({ subject: 'chat' })).map(({ cause }) => cause)).toEqual(['test', 'first']);
    });
  });

  test('a change never affects a later service with the same name', async () => {
    await withStore(driver, async (store) => {
      const old = await addService(store);
      await store.services.remove('chat', old.key, anEvent());
      const renewed = await addService(store, { key: 'ffffffff' });
      expect(await store.services.update(old, { state: 'FAILED' })).toBeUndefined();
      await store.services.remove('chat', old.key, anEvent({ cause: 'too-late' }));
      expect(await store.services.list()).toEqual([renewed]);
      expect((await store.events.list({ subject: 'chat', subjectKey: old.key })).map(({ cause }) => cause)).toEqual(['test', 'test']);
    });
  });

  test('removing a service removes versions and replicas, keeps events, and is repeatable', async () => {
    await withStore(driver, async (store) => {
      const service = await addService(store);
      await addService(store, { name: 'other', key: 'eeeeeeee', port: 30_002 });
      await store.replicas.add(service, aReplica(), anEvent());
      for (const _ of [1, 2]) await store.services.remove('chat', service.key, anEvent({ cause: 'removed' }));
      expect(await store.services.get('chat')).toBeUndefined();
      expect(await store.services.version('chat', 1)).toBeUndefined();
      expect(await store.replicas.list('chat')).toEqual([]);
      expect((await store.events.list({ subject: 'chat' })).map(({ cause }) => cause)).toEqual(['test', 'test', 'removed']);
      expect(await store.services.version('other', 1)).toBeDefined();
      await addService(store);
    });
  });

  test('services are listed in the order of creation', async () => {
    await withStore(driver, async (store) => {
      await addService(store, { name: 'b', createdAt: 2, port: 1 });
      await addService(store, { name: 'c', createdAt: 1, port: 2 });
      await addService(store, { name: 'a', createdAt: 2, port: 3 });
      expect((await store.services.list()).map(({ name }) => name)).toEqual(['c', 'a', 'b']);
    });
  });
});
