import { expect, test } from 'vitest';
import type { KubernetesProvider } from '../../src/providers/kubernetes/index.ts';
import type { MachineId } from '../../src/providers/provider.ts';
import { aMachineSpec } from '../support/builders.ts';
import { addReplicaUser, openKubernetesPlace } from '../support/kubernetes-place.ts';
import { describeKubernetes, withKubernetes } from '../support/kubernetes.ts';
import { withTempHome } from '../support/temp-home.ts';
import { waitFor } from '../support/wait-for.ts';
import { create, small, statusOf, tags } from './place-world.ts';

describeKubernetes('api', 'two clusters as one place', () => {
  test('each context is a region; one that cannot be asked holds up only who may have something there', async () => {
    await withKubernetes({ name: 'east' }, async (east) => {
      await withKubernetes({ name: 'west' }, async (west) => {
        await east.addFakeNode('e1');
        await west.addFakeNode('w1', { cpus: 64 });
        const kubeconfigs = [await addReplicaUser(east), await addReplicaUser(west)];
        await withTempHome(async (home) => {
          const place = openKubernetesPlace({ kubeconfigs, home, config: { allowedContexts: 'all' } });
          expect((await place.offers(small, {})).offers.map(({ region }) => region)).toEqual(['east', 'west']);
          const [large] = (await place.offers({ ...small, cpus: { value: 32, atLeast: true } }, {})).offers;
          expect(large?.region).toBe('west');
          const offers = (await place.offers(small, {})).offers;
          const made: MachineId[] = [];
          for (const [index, offer] of offers.entries())
            made.push(await place.create(offer, aMachineSpec({ tags: { ...tags, 'svc-service-key': `key${index}` } }), 'k1', {}));
          expect(made).toEqual([expect.stringMatching(/^east\//), expect.stringMatching(/^west\//)]);
          expect((await place.list({}, {})).map(({ id }) => id)).toEqual(made);
          await west.stopApiServer();
          expect((await place.list({ 'svc-service-key': 'key0' }, {})).map(({ id }) => id)).toEqual([made[0]]);
          await expect(place.list({ 'svc-service-key': 'key1' }, {})).rejects.toMatchObject({ code: 'SVC_KUBERNETES' });
          expect((await place.offers(small, {})).offers.map(({ region }) => region)).toEqual(['east']);
          await west.startApiServer();
          await waitFor('west to answer', async () => (await place.list({}, {})).length === 2, { everyMs: 500 });
        });
      });
    });
  });

  test('a pod that is evicted is gone, and one whose node was removed from the cluster is taken off the record', async () => {
    await withKubernetes({}, async (cluster) => {
      await cluster.addFakeNode('f1');
      const kubeconfig = await addReplicaUser(cluster);
      await withTempHome(async (home) => {
        const place = openKubernetesPlace({ kubeconfigs: [kubeconfig], home });
        const id = await create(place);
        const name = id.split('/').pop() ?? '';
        expect(await statusOf(place, id)).toMatchObject({ state: 'booting' });
        const eviction = { apiVersion: 'policy/v1beta1', kind: 'Eviction', metadata: { name, namespace: 'default' } };
        await cluster.request('POST', `/api/v1/namespaces/default/pods/${name}/eviction`, eviction);
        expect(await statusOf(place, id)).toMatchObject({ state: 'gone' });
        await cluster.kubectl('delete', 'node', 'f1');
        await place.destroy(id, {});
        expect(await cluster.pods('default')).toEqual([]);
      });
    });
  });

  test('a cluster that adds nodes is waited for; when none comes in time, the wait is over', async () => {
    await withKubernetes({}, async (cluster) => {
      const kubeconfig = await addReplicaUser(cluster);
      await withTempHome(async (home) => {
        const withPatience = (provisionTimeoutSeconds: number): KubernetesProvider =>
          openKubernetesPlace({ kubeconfigs: [kubeconfig], home, config: { autoscaler: 'generic', provisionTimeoutSeconds } });
        const place = withPatience(120);
        const newNode = waitFor('the pod', async () => (await cluster.pods('default')).length === 1).then(() => cluster.addFakeNode('new'));
        const [id] = await Promise.all([create(place), newNode]);
        expect(await statusOf(place, id)).toMatchObject({ state: 'booting' });
        await cluster.kubectl('cordon', 'new');
        await expect(create(withPatience(10), {}, 'k2')).rejects.toMatchObject({
          refusal: 'capacity',
          message: expect.stringContaining('unschedulable'),
        });
      });
    });
  });
});
