import { expect, test } from 'vitest';
import { applied, defaultStorageClass, withFakeKubeApi } from '../../../test/support/high-availability.ts';
import type { FakeKubeApi } from '../../../test/support/fake-kube-api.ts';
import { SvcError } from '../../shared/errors.ts';
import { ensureInCluster } from './high-availability.ts';

const classes = '/apis/storage.k8s.io/v1/storageclasses';
const volume = '/api/v1/persistentvolumes/disk';
const setting = 'kubernetes.high_availability.storage_class_name';

/** A Kubernetes cluster whose only class is not the default one, unless `change` adds more. */
async function deploy(change: (api: FakeKubeApi) => void, database?: string): Promise<readonly string[]> {
  let objects: readonly string[] = [];
  await withFakeKubeApi(
    async (deps, api) => {
      api.objects.delete(defaultStorageClass);
      api.put(`${classes}/fast`, {});
      change(api);
      await ensureInCluster(deps).finally(() => {
        objects = applied(api);
      });
    },
    database === undefined ? {} : { database },
  );
  return objects;
}

test('without a default StorageClass, nothing is created, and the error names setting and classes', async () => {
  let asked: readonly string[] = [];
  const refused = deploy((api) => {
    asked = api.asked;
  });
  await expect(refused).rejects.toMatchObject({
    code: 'SVC_CONTROLLER_START',
    message: 'The Kubernetes cluster prod has no default StorageClass for the volume of the controller.',
    hint: expect.stringContaining(`Set ${setting} in config.yaml to one of: fast.`),
  });
  expect(asked.filter((call) => call.startsWith('apply '))).toEqual([]);
});

test('without any StorageClass, the hint names the administrator and PostgreSQL', async () => {
  await expect(deploy((api) => void api.objects.delete(`${classes}/fast`))).rejects.toMatchObject({
    hint: expect.stringMatching(/no StorageClass at all: .*serve\.controller\.database/),
  });
});

test.each<readonly [string, (api: FakeKubeApi) => void]>([
  [
    'a default class of the beta name',
    (api) =>
      api.put(`${classes}/b`, { metadata: { name: 'b', annotations: { 'storageclass.beta.kubernetes.io/is-default-class': 'true' } } }),
  ],
  ['a free volume without a class', (api) => api.put(volume, { spec: {} })],
  [
    'a volume reserved for the controller',
    (api) => api.put(volume, { spec: { claimRef: { name: 'svc-controller', namespace: 'serving' } } }),
  ],
  [
    'a user who may not read volumes',
    (api) => api.failures.set('list /api/v1/persistentvolumes', new SvcError('SVC_DENIED', 'you may not')),
  ],
])('%s is enough', async (_, change) => {
  expect(await deploy(change)).toContain('/api/v1/namespaces/serving/persistentvolumeclaims/svc-controller');
});

test("a volume of another class, or of another namespace's claim, does not count", async () => {
  await expect(deploy((api) => api.put(volume, { spec: { storageClassName: 'fast' } }))).rejects.toThrow('default StorageClass');
  const claimRef = { name: 'svc-controller', namespace: 'other' };
  await expect(deploy((api) => api.put(volume, { spec: { claimRef } }))).rejects.toThrow('default StorageClass');
});

test('a configured class that does not exist is named with its setting', async () => {
  await withFakeKubeApi(async (deps, api) => {
    const config = await deps.config();
    const kubernetes = { ...config.kubernetes, storageClass: 'slow' };
    const refused = ensureInCluster({ ...deps, config: async () => ({ ...config, kubernetes }) });
    await expect(refused).rejects.toThrow(`has no StorageClass slow (${setting})`);
    api.put(`${classes}/slow`, {});
    await ensureInCluster({ ...deps, config: async () => ({ ...config, kubernetes }) });
    // The claim exists now, and keeps its class.
    api.objects.delete(`${classes}/slow`);
    await expect(ensureInCluster({ ...deps, config: async () => ({ ...config, kubernetes }) })).resolves.toBeDefined();
  });
});

test('with PostgreSQL no StorageClass is needed', async () => {
  expect(await deploy(() => undefined, 'postgres://db/svc')).toContain('/apis/apps/v1/namespaces/serving/deployments/svc-controller');
});
