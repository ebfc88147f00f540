import { expect, test } from 'vitest';
import { FakeClock } from '../../../test/support/fake-clock.ts';
import { FakeKubeApi } from '../../../test/support/fake-kube-api.ts';
import {
  anchorPath,
  applied,
  aKubernetesControllerRecord,
  apiGroupList,
  depsIn,
  leasePath,
  withFakeKubeApi,
  defaultStorageClass,
} from '../../../test/support/high-availability.ts';
import { withTempHome } from '../../../test/support/temp-home.ts';
import type { KubeDraft, KubeObject } from '../../kubernetes/kube-api.ts';
import { SvcError } from '../../shared/errors.ts';
import { writeControllerRecord } from '../controller-record.ts';
import { ensureInCluster, healInCluster, removeFromCluster, stopInCluster } from './high-availability.ts';

/** Every object of a controller in a Kubernetes cluster, by its path below that of its API group. */
const namespacedObjects = [
  ['ConfigMap svc-controller', '/api/v1/namespaces/serving/configmaps/svc-controller', { data: { key: 'c0ffee' } }],
  ['Secret svc-controller-files', '/api/v1/namespaces/serving/secrets/svc-controller-files'],
  ['Secret svc-controller-environment', '/api/v1/namespaces/serving/secrets/svc-controller-environment'],
  ['Secret svc-control-token', '/api/v1/namespaces/serving/secrets/svc-control-token'],
  ['ServiceAccount svc-balancer', '/api/v1/namespaces/serving/serviceaccounts/svc-balancer'],
  ['Role svc-controller', '/apis/rbac.authorization.k8s.io/v1/namespaces/serving/roles/svc-controller'],
  ['RoleBinding svc-balancer', '/apis/rbac.authorization.k8s.io/v1/namespaces/serving/rolebindings/svc-balancer'],
  ['Service svc-endpoints', '/api/v1/namespaces/serving/services/svc-endpoints'],
  ['PersistentVolumeClaim svc-controller', '/api/v1/namespaces/serving/persistentvolumeclaims/svc-controller'],
  ['Deployment svc-balancer', '/apis/apps/v1/namespaces/serving/deployments/svc-balancer'],
  ['PodDisruptionBudget svc-controller', '/apis/policy/v1/namespaces/serving/poddisruptionbudgets/svc-controller'],
  ['Lease svc-controller', leasePath],
] as const;

test.each(namespacedObjects)('%s of another owner is neither taken over nor changed', async (name, path, fields: object = {}) => {
  for (const labels of [{ app: 'theirs' }, { 'svc-controller': 'another-controller' }]) {
    await withFakeKubeApi(async (deps, api) => {
      api.put(path, { metadata: { name: path.split('/').at(-1), labels }, ...fields });
      // The record provides the key, so the command does not take it from a foreign anchor.
      writeControllerRecord(deps.paths.controllerRecord, aKubernetesControllerRecord());
      await expect(ensureInCluster(deps)).rejects.toMatchObject({
        code: 'SVC_CONTROLLER_KIND',
        message: `The namespace serving has objects of these names that are not of this controller: ${name}.`,
      });
      expect(applied(api)).toEqual([]);

      const before = [...api.objects];
      await removeFromCluster(deps, false);
      expect([...api.objects]).toEqual(before);
    });
  }
});

test('a manually created object is accepted once it has the label from the error', async () => {
  await withFakeKubeApi(async (deps, api) => {
    const path = '/api/v1/namespaces/serving/secrets/svc-control-token';
    const data = { token: Buffer.from('a token made by hand').toString('base64') };
    api.put(path, { metadata: { name: 'svc-control-token' }, data });
    const refusal: unknown = await ensureInCluster(deps).catch((error: unknown) => error);
    const [, key] =
      /kubectl --context prod -n serving label secret svc-control-token svc-controller=(\w+)/.exec(
        refusal instanceof SvcError ? (refusal.hint ?? '') : '',
      ) ?? [];
    api.put(path, { metadata: { name: 'svc-control-token', labels: { 'svc-controller': key } }, data });
    await ensureInCluster(deps);
    expect(api.objects.get(path)).toMatchObject({ data });
  });
});

test("removal keeps and reports foreign objects that replaced the controller's", async () => {
  await withFakeKubeApi(async (deps, api) => {
    await ensureInCluster(deps);
    const steps: string[] = [];
    const path = '/api/v1/namespaces/serving/services/svc-endpoints';
    api.put(path, { metadata: { name: 'svc-endpoints', labels: { app: 'theirs' } } });
    api.put('/api/v1/namespaces/serving/pods/other', { metadata: { name: 'other', labels: { 'svc-role': 'controller' } } });
    await removeFromCluster({ ...deps, onStep: (text) => void steps.push(text) }, false);
    expect([...api.objects.keys()]).toEqual([
      '/api/v1/namespaces/kube-system',
      defaultStorageClass,
      path,
      '/api/v1/namespaces/serving/pods/other',
    ]);
    expect(steps).toContain('Service svc-endpoints stays: it is not of this controller');
  });
});

/** A Kubernetes cluster where an object is replaced by another one after it was read and before it is removed. */
class SwappingCluster extends FakeKubeApi {
  override async get<T extends KubeObject>(path: string): Promise<T | undefined> {
    const found = await super.get<T>(path);
    if (path.endsWith('/services/svc-endpoints') && found?.metadata.labels?.['app'] !== 'theirs')
      this.put(path, { metadata: { name: 'svc-endpoints', labels: { app: 'theirs' } } });
    return found;
  }
}

test('removal does not delete an object that was replaced after it was read', async () => {
  await withTempHome(async (home) => {
    const api = new SwappingCluster();
    api.texts.set('/apis', apiGroupList);
    const deps = depsIn(home, api);
    writeControllerRecord(deps.paths.controllerRecord, aKubernetesControllerRecord());
    const path = '/api/v1/namespaces/serving/services/svc-endpoints';
    api.put(path, { metadata: { name: 'svc-endpoints', labels: { 'svc-controller': 'c0ffee' } } });
    await removeFromCluster(deps, false);
    expect(api.objects.get(path)).toMatchObject({ metadata: { labels: { app: 'theirs' } } });
  });
});

test("a foreign Deployment with the controller's name is not stopped", async () => {
  await withFakeKubeApi(async (deps, api) => {
    await ensureInCluster(deps);
    api.put('/apis/apps/v1/namespaces/serving/deployments/svc-controller', { metadata: { name: 'svc-controller', labels: {} } });
    await expect(stopInCluster(deps)).rejects.toMatchObject({ code: 'SVC_CONTROLLER_UNREACHABLE' });
    expect(api.asked.filter((line) => line.startsWith('merge'))).toEqual([]);
  });
});

/**
 * A Kubernetes cluster that removes everything once, after the last object was applied, because a user removed the
 * anchor meanwhile.
 */
class CollectingCluster extends FakeKubeApi {
  #isDone = false;

  override async apply<T extends KubeObject>(path: string, object: KubeDraft): Promise<T> {
    const made = await super.apply<T>(path, object);
    if (this.#isDone || !path.endsWith('poddisruptionbudgets/svc-balancer')) return made;
    this.#isDone = true;
    for (const [each, { metadata }] of this.objects)
      if (metadata.ownerReferences !== undefined || each === anchorPath) this.objects.delete(each);
    return made;
  }
}

test('when the anchor is removed during an apply, all objects are applied again', async () => {
  await withTempHome(async (home) => {
    const api = new CollectingCluster();
    api.texts.set('/apis', apiGroupList);
    const clock = new FakeClock();
    const deps = { ...depsIn(home, api), clock };
    const isDone = ensureInCluster(deps).then(() => true);
    while (!(await Promise.race([isDone, clock.advance(1_000).then(() => false)])));
    const uid = api.objects.get(anchorPath)?.metadata.uid;
    expect(uid).toBeDefined();
    for (const name of ['deployments/svc-controller', 'deployments/svc-balancer'])
      expect(api.objects.get(`/apis/apps/v1/namespaces/serving/${name}`)?.metadata.ownerReferences).toMatchObject([{ uid }]);
  });
});

test('a removed anchor is created again, except while the controller is being terminated', async () => {
  await withFakeKubeApi(async (deps, api) => {
    await ensureInCluster(deps);
    await healInCluster(deps);
    const deployment = '/apis/apps/v1/namespaces/serving/deployments/svc-controller';
    // The Deployment still exists until Kubernetes detects that its owner is gone.
    api.objects.delete(anchorPath);
    await healInCluster(deps);
    const uid = api.objects.get(anchorPath)?.metadata.uid;
    expect(api.objects.get(deployment)?.metadata.ownerReferences).toMatchObject([{ uid }]);
    // Another user created only the anchor again: dependents of the former anchor will be removed.
    api.put(anchorPath, api.objects.get(anchorPath) ?? {});
    await healInCluster(deps);
    expect(api.objects.get(deployment)?.metadata.ownerReferences).toMatchObject([{ uid: api.objects.get(anchorPath)?.metadata.uid }]);

    writeControllerRecord(deps.paths.controllerRecord, aKubernetesControllerRecord({ isTerminating: true }));
    api.objects.clear();
    await expect(healInCluster(deps)).rejects.toMatchObject({ code: 'SVC_CONTROLLER_UNREACHABLE' });
    expect([...api.objects]).toEqual([]);
  });
});
