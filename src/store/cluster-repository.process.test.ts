import { expect, test } from 'vitest';
import { aTask } from '../../test/support/builders.ts';
import { describeStores } from '../../test/support/describe-stores.ts';
import { anEvent, withStore } from '../../test/support/stores.ts';
import type { ClusterRecord, JobRecord } from '../domain/records.ts';
import type { Store } from './store.ts';

function aCluster(change: Partial<ClusterRecord> = {}): ClusterRecord {
  return {
    name: 'box',
    key: 'c0ffee00',
    state: 'INIT',
    machineKey: 'k',
    machineId: null,
    offer: null,
    createdAt: 1_000,
    reason: null,
    revision: 1,
    ...change,
  };
}

const aJob: Omit<JobRecord, 'id' | 'revision'> = {
  cluster: 'box',
  state: 'PENDING',
  task: aTask({ run: 'true' }),
  createdAt: 2_000,
  startedAt: null,
  endedAt: null,
  exitCode: null,
};

async function addCluster(store: Store, change: Partial<ClusterRecord> = {}): Promise<ClusterRecord> {
  const cluster = aCluster(change);
  await store.clusters.add(cluster, anEvent({ subject: cluster.name, subjectKey: cluster.key }));
  return cluster;
}

describeStores('clusters', (driver) => {
  test('an added cluster is read back, and every field can be changed', async () => {
    await withStore(driver, async (store) => {
      const cluster = await addCluster(store);
      expect(await store.clusters.get('box')).toEqual(cluster);
      expect(await store.clusters.get('other')).toBeUndefined();
      const changed: ClusterRecord = {
        ...cluster,
        state: 'UP',
        machineKey: 'k2',
        machineId: 'm',
        offer: { provider: 'local', region: 'local', zone: null, instanceType: 'x', resources: '2x', gpus: 0, spot: false, hourlyUsd: 0 },
        createdAt: 1_001,
        reason: 'because',
        revision: 2,
      };
      expect(await store.clusters.update(cluster, changed, anEvent({ subject: 'box', cause: 'up' }))).toEqual(changed);
      expect(await store.clusters.list()).toEqual([changed]);
      expect(await store.clusters.update(cluster, { state: 'FAILED' }, anEvent({ subject: 'box', cause: 'late' }))).toBeUndefined();
      expect((await store.events.list({ subject: 'box' })).map(({ cause }) => cause)).toEqual(['up']);
    });
  });

  test('an existing name is refused', async () => {
    await withStore(driver, async (store) => {
      await addCluster(store);
      await expect(addCluster(store, { key: 'other' })).rejects.toMatchObject({ code: 'SVC_NAME_IN_USE' });
      expect(await store.clusters.list()).toHaveLength(1);
    });
  });

  test('job ids count from 1 per cluster, and every field can be changed', async () => {
    await withStore(driver, async (store) => {
      await addCluster(store);
      await addCluster(store, { name: 'tin' });
      const first = await store.clusters.addJob(aJob);
      expect(first).toEqual({ ...aJob, id: 1, revision: 1 });
      expect(await store.clusters.addJob({ ...aJob, cluster: 'tin' })).toMatchObject({ id: 1 });
      expect(await store.clusters.addJob(aJob)).toMatchObject({ id: 2 });
      const changed: JobRecord = { ...first, state: 'FAILED', startedAt: 3, endedAt: 4, exitCode: 137, revision: 2 };
      expect(await store.clusters.updateJob(first, changed)).toEqual(changed);
      expect(await store.clusters.updateJob(first, { state: 'SUCCEEDED' })).toBeUndefined();
      expect(await store.clusters.jobs('box')).toEqual([changed, { ...aJob, id: 2, revision: 1 }]);
    });
  });

  test('jobs added concurrently over two connections get different ids', async () => {
    await withStore(driver, async (store, reopen) => {
      await addCluster(store);
      const stores = [store, await reopen()];
      const jobs = await Promise.all(Array.from({ length: 10 }, () => stores.map((one) => one.clusters.addJob(aJob))).flat());
      expect(jobs.map(({ id }) => id).toSorted((a, b) => a - b)).toEqual(Array.from({ length: 20 }, (_, index) => index + 1));
    });
  });

  test('a job of a missing cluster is refused', async () => {
    await withStore(driver, async (store) => {
      await expect(store.clusters.addJob(aJob)).rejects.toMatchObject({ code: 'SVC_CLUSTER_NOT_FOUND' });
    });
  });

  test('removing a cluster removes its jobs, is repeatable, and spares a later namesake', async () => {
    await withStore(driver, async (store) => {
      const old = await addCluster(store);
      const oldJob = await store.clusters.addJob(aJob);
      for (const _ of [1, 2])
        await store.clusters.remove('box', old.key, anEvent({ subject: 'box', subjectKey: old.key, cause: 'removed' }));
      expect(await store.clusters.jobs('box')).toEqual([]);
      expect((await store.events.list({ subject: 'box' })).map(({ cause }) => cause)).toEqual(['test', 'removed']);

      await addCluster(store, { key: 'later' });
      await store.clusters.addJob({ ...aJob, createdAt: 9_000 });
      await store.clusters.remove('box', old.key, anEvent());
      expect(await store.clusters.update(old, { state: 'FAILED' })).toBeUndefined();
      expect(await store.clusters.updateJob(oldJob, { state: 'FAILED' })).toBeUndefined();
      expect(await store.clusters.jobs('box')).toMatchObject([{ id: 1, state: 'PENDING' }]);
    });
  });
});
