import { expect, test } from 'vitest';
import type { KubernetesProvider } from '../../src/providers/kubernetes/index.ts';
import type { MachineId } from '../../src/providers/provider.ts';
import { aMachineSpec } from '../support/builders.ts';
import { addReplicaUser, openKubernetesProvider } from '../support/kubernetes-provider.ts';
import { describeKubernetes, withKubernetes } from '../support/kubernetes.ts';
import { withTempHome } from '../support/temp-home.ts';
import { waitFor } from '../support/wait-for.ts';
import { create, small, statusOf, tags } from './provider-world.ts';

describeKubernetes('api', 'two Kubernetes clusters as one provider', () => {
  test('each context is a region; an unreachable one blocks only its own machines', async () => {
    await withKubernetes({ name: 'east' }, async (east) => {
      await withKubernetes({ name: 'west' }, async (west) => {
        await east.addFakeNode('e1');
        await west.addFakeNode('w1', { cpus: 64 });
        const kubeconfigs = [await addReplicaUser(east), await addReplicaUser(west)];
        await withTempHome(async (home) => {
          const provider = openKubernetesProvider({ kubeconfigs, home, config: { allowedContexts: 'all' } });
          expect((await provider.offers(small, {})).offers.map(({ region }) => region)).toEqual(['east', 'west']);
          const [large] = (await provider.offers({ ...small, cpus: { value: 32, atLeast: true } }, {})).offers;
          expect(large?.region).toBe('west');
          const offers = (await provider.offers(small, {})).offers;
          const made: MachineId[] = [];
          for (const [index, offer] of offers.entries())
            made.push(await provider.create(offer, aMachineSpec({ tags: { ...tags, 'svc-service-key': `key${index}` } }), 'k1', {}));
          expect(made).toEqual([expect.stringMatching(/^east\//), expect.stringMatching(/^west\//)]);
          expect((await provider.list({}, {})).map(({ id }) => id)).toEqual(made);
          await west.stopApiServer();
          expect((await provider.list({ 'svc-service-key': 'key0' }, {})).map(({ id }) => id)).toEqual([made[0]]);
          await expect(provider.list({ 'svc-service-key': 'key1' }, {})).rejects.toMatchObject({ code: 'SVC_KUBERNETES' });
          expect((await provider.offers(small, {})).offers.map(({ region }) => region)).toEqual(['east']);
          await west.startApiServer();
          await waitFor('west to answer', async () => (await provider.list({}, {})).length === 2, { everyMs: 500 });
        });
      });
    });
  });

  test("an evicted pod is gone, and a removed node's pod is deleted", async () => {
    await withKubernetes({}, async (cluster) => {
      await cluster.addFakeNode('f1');
      const kubeconfig = await addReplicaUser(cluster);
      await withTempHome(async (home) => {
        const provider = openKubernetesProvider({ kubeconfigs: [kubeconfig], home });
        const id = await create(provider);
        const name = id.split('/').pop() ?? '';
        expect(await statusOf(provider, id)).toMatchObject({ state: 'booting' });
        const eviction = { apiVersion: 'policy/v1beta1', kind: 'Eviction', metadata: { name, namespace: 'default' } };
        await cluster.request('POST', `/api/v1/namespaces/default/pods/${name}/eviction`, eviction);
        expect(await statusOf(provider, id)).toMatchObject({ state: 'gone' });
        await cluster.kubectl('delete', 'node', 'f1');
        await provider.destroy(id, {});
        expect(await cluster.pods('default')).toEqual([]);
      });
    });
  });

  test('a cluster that adds nodes is awaited until the provision timeout', async () => {
    await withKubernetes({}, async (cluster) => {
      const kubeconfig = await addReplicaUser(cluster);
      await withTempHome(async (home) => {
        const withProvisionTimeout = (provisionTimeoutSeconds: number): KubernetesProvider =>
          openKubernetesProvider({ kubeconfigs: [kubeconfig], home, config: { autoscaler: 'generic', provisionTimeoutSeconds } });
        const provider = withProvisionTimeout(120);
        const newNode = waitFor('the pod', async () => (await cluster.pods('default')).length === 1).then(() => cluster.addFakeNode('new'));
        const [id] = await Promise.all([create(provider), newNode]);
        expect(await statusOf(provider, id)).toMatchObject({ state: 'booting' });
        await cluster.kubectl('cordon', 'new');
        await expect(create(withProvisionTimeout(10), {}, 'k2')).rejects.toMatchObject({
          refusal: 'capacity',
          message: expect.stringContaining('unschedulable'),
        });
      });
    });
  });
});
