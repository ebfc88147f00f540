import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import type { ServiceView } from '../../src/api/contract.ts';
import { report } from '../support/figures.ts';
import { describeKubernetes, type PodView, type TestCluster } from '../support/kubernetes.ts';
import { killHard, reconcilersOf } from '../support/processes.ts';
import { Requests } from '../support/requests.ts';
import { waitFor } from '../support/wait-for.ts';
import { nothingLeft, webFiles, withKubernetesClusters, type KubernetesWorld } from './cluster-world.ts';
import { podsWith, readyReplicas, downAll, webService, withController } from './controller-world.ts';

const slow = { everyMs: 100 } as const;

/**
 * A node is not ready after 10 s, counts as silent 5 s later, and loses intolerant pods after another 5 s. This is well
 * beyond all of it.
 */
const pastEverythingMs = 25_000;

interface World {
  readonly svc: KubernetesWorld['svc'];
  readonly cluster: TestCluster;
  readonly load: Requests;
  readonly service: ServiceView;
}

/** Three replicas under load, one on each of three nodes; afterwards nothing of them may remain. */
async function withReplicas(use: (world: World) => Promise<void>): Promise<void> {
  await withKubernetesClusters([{ name: 'a', nodes: 3 }], async ({ svc, clusters }) => {
    const [cluster] = clusters;
    if (cluster === undefined) throw new Error('no cluster');
    const file = webFiles(svc, 3, ['  infra: k8s/a', '  cpus: 0.2+', '  memory: 0.2+'], ['  graceful_termination: 5']);
    const url = (await svc.ok(['serve', 'up', file, '-n', 'web', '--yes'])).trim();
    const service = await svc.ready('web', 3);
    const load = new Requests(url, 40);
    try {
      await waitFor('an answer of each replica', () => load.repliesSince(0).size === 3, slow);
      await use({ svc, cluster, load, service });
    } finally {
      await load.stop();
    }
    await svc.end();
    await nothingLeft([cluster]);
  });
}

const idOf = ({ name }: PodView): number => Number(/^svc-web-(\d+)-/.exec(name)?.[1]);
const nodeOf = ({ node = '' }: PodView): number => Number(node.replace('node', ''));
const replicaPods = async (cluster: TestCluster): Promise<readonly PodView[]> =>
  (await cluster.pods()).filter(({ name }) => name.startsWith('svc-web-'));

async function podOn(cluster: TestCluster, node: number): Promise<PodView> {
  const pod = (await replicaPods(cluster)).find((one) => nodeOf(one) === node);
  if (pod === undefined) throw new Error(`no replica on node ${node}`);
  return pod;
}

const untilSilent = async (cluster: TestCluster, nodes: readonly number[]): Promise<void> => {
  for (const node of nodes) await waitFor(`node ${node} to be silent`, async () => !(await cluster.isNodeReady(node)), slow);
};

const readyIds = ({ replicas }: ServiceView): readonly number[] => replicas.filter(({ status }) => status === 'READY').map(({ id }) => id);

/** The state of pods and replicas, which must not change. */
async function recordOf({ svc, cluster }: World): Promise<unknown> {
  const { items } = JSON.parse(await cluster.kubectl('get', 'pods', '-A', '-o', 'json'));
  const pods = items
    .filter(({ metadata }: { metadata: { name: string } }) => metadata.name.startsWith('svc-web-'))
    .map(({ metadata: { uid, deletionTimestamp } }: { metadata: { uid: string; deletionTimestamp?: string } }) => [uid, deletionTimestamp]);
  return { pods, replicas: (await svc.service('web')).replicas.map(({ id, status }) => [id, status]) };
}

/**
 * Waits until all of `replicaIds` are ready. Fails when a replica's pod is removed before this many replicas are ready
 * without it.
 */
async function untilReplaced({ svc, cluster }: World, replicaIds: readonly number[]): Promise<void> {
  const before = new Set((await replicaPods(cluster)).map(idOf));
  await waitFor(
    `the replicas ${replicaIds.join(', ')}`,
    async () => {
      const pods = new Set((await replicaPods(cluster)).map(idOf));
      const ready = readyIds(await svc.service('web'));
      const removed = [...before].filter((id) => !pods.has(id));
      if (removed.length > 0 && ready.length < 3) throw new Error(`removed before they were replaced: ${removed.join(', ')}`);
      return replicaIds.every((id) => ready.includes(id));
    },
    slow,
  );
}

describeKubernetes('nodes', 'nodes that report nothing', () => {
  test('when all kubelets stop, no answering replica is removed and no request fails', async () => {
    await withReplicas(async (world) => {
      const { svc, cluster, load } = world;
      const before = await recordOf(world);
      const at = Date.now();
      for (const node of [1, 2, 3]) await cluster.pauseKubelet(node);
      await untilSilent(cluster, [1, 2, 3]);
      await sleep(Number(process.env['SVC_TEST_SILENT_MS'] ?? pastEverythingMs));
      expect(await recordOf(world)).toEqual(before);
      // The next controller has no history, and cannot run commands in any pod.
      expect(killHard(reconcilersOf(svc.home))).toBe(1);
      await waitFor('the next reconciler', () => reconcilersOf(svc.home).length === 1, slow);
      await sleep(15_000);
      expect(await recordOf(world)).toEqual(before);
      for (const node of [1, 2, 3]) await cluster.resumeKubelet(node);
      for (const node of [1, 2, 3]) await cluster.nodeReady(node);
      await sleep(5_000);
      expect(await recordOf(world)).toEqual(before);
      const { outcomes, gapMs } = load.figuresSince(at);
      report(`all kubelets stopped for ${Math.round((Date.now() - at) / 1_000)} s: ${JSON.stringify(outcomes)}, gap ${gapMs} ms`);
      expect(Object.keys(outcomes)).toEqual(['200']);
      expect(readyIds(await svc.service('web'))).toEqual([1, 2, 3]);
    });
  });

  test('when all kubelets stop, the endpoint of an in-cluster controller still answers', { timeout: 1_800_000 }, async () => {
    await withController(
      () => ['balancers: 2', 'resources: {infra: k8s/prod, disk_size: 50}'],
      async (world) => {
        const { svc, cluster } = world;
        await svc.ok(['controller', 'start']);
        const { url } = await webService(world);
        const isReady = async (): Promise<boolean> => (await podsWith(cluster, 'svc-balancer-')).every((pod) => pod.isReady);
        await waitFor('balancers that are ready', isReady, slow);
        const load = new Requests(url, 40);
        try {
          await waitFor('an answer', () => load.repliesSince(0).size > 0, slow);
          const at = Date.now();
          for (const node of [1, 2, 3]) await cluster.pauseKubelet(node);
          await untilSilent(cluster, [1, 2, 3]);
          await waitFor(
            'balancers that are not ready',
            async () => !(await podsWith(cluster, 'svc-balancer-')).some((pod) => pod.isReady),
            slow,
          );
          await sleep(Number(process.env['SVC_TEST_SILENT_MS'] ?? pastEverythingMs));
          // Open connections survive their removal from the Service; only new ones are conclusive.
          const fresh = async (): Promise<number> => (await fetch(url, { headers: { connection: 'close' } })).status;
          expect(new Set(await Promise.all(Array.from({ length: 20 }, fresh)))).toEqual(new Set([200]));
          for (const node of [1, 2, 3]) await cluster.resumeKubelet(node);
          for (const node of [1, 2, 3]) await cluster.nodeReady(node);
          await waitFor('balancers that are ready again', isReady, slow);
          const { outcomes, gapMs } = load.figuresSince(at);
          report(
            `all kubelets below balancers stopped for ${Math.round((Date.now() - at) / 1_000)} s: ${JSON.stringify(outcomes)}, gap ${gapMs} ms`,
          );
          expect(Object.keys(outcomes)).toEqual(['200']);
        } finally {
          await load.stop();
        }
        await readyReplicas(svc, 2);
        await downAll(world);
      },
    );
  });

  test('a silent node keeps its replica; a deleted replica serves until replaced', async () => {
    await withReplicas(async (world) => {
      const { svc, cluster, load } = world;
      const before = await recordOf(world);
      const at = Date.now();
      await cluster.pauseKubelet(1);
      await untilSilent(cluster, [1]);
      await sleep(pastEverythingMs);
      expect(await recordOf(world)).toEqual(before);
      const deleted = await podOn(cluster, 1);
      await cluster.kubectl('delete', 'pod', deleted.name, '--wait=false');
      await waitFor('the replacement', async () => readyIds(await svc.service('web')).includes(4), slow);
      await waitFor('three replicas', async () => (await svc.service('web')).replicasReady === 3, slow);
      const replacedAt = Date.now();
      await waitFor('its requests', () => load.repliesSince(replacedAt).has('replica 4'), slow);
      expect(readyIds(await svc.service('web'))).not.toContain(idOf(deleted));
      await cluster.resumeKubelet(1);
      await cluster.nodeReady(1);
      await waitFor('the deleted pod to end', async () => !(await replicaPods(cluster)).some((pod) => idOf(pod) === idOf(deleted)), slow);
      expect(Object.keys(load.figuresSince(at).outcomes)).toEqual(['200']);
    });
  });

  test('a dead node is replaced within seconds, and its pod is removed later', async () => {
    await withReplicas(async (world) => {
      const { cluster, load } = world;
      const at = Date.now();
      const lost = await podOn(cluster, 1);
      await cluster.killNode(1);
      await untilReplaced(world, [4]);
      report(`a dead node's replica replaced ${((Date.now() - at) / 1_000).toFixed(1)} s after its death`);
      await waitFor('its pod to be gone', async () => !(await replicaPods(cluster)).some((pod) => idOf(pod) === idOf(lost)), slow);
      expect(Object.keys(load.figuresSince(at).outcomes)).toEqual(['200']);
    });
  });

  test('when most nodes die, removal waits until fewer of them are silent', async () => {
    await withReplicas(async (world) => {
      const { svc, cluster } = world;
      const lost = [await podOn(cluster, 1), await podOn(cluster, 2)].map(idOf);
      await Promise.all([cluster.killNode(1), cluster.killNode(2)]);
      await waitFor(
        'both replacements',
        async () => {
          const ready = readyIds(await svc.service('web'));
          return [4, 5].every((id) => ready.includes(id));
        },
        slow,
      );
      await waitFor('three ready replicas', async () => (await svc.service('web')).replicasReady === 3, slow);
      await untilSilent(cluster, [1, 2]);
      await sleep(pastEverythingMs);
      expect((await replicaPods(cluster)).map(idOf)).toEqual(expect.arrayContaining(lost));
      await cluster.startNode(1);
      await waitFor('the lost pods to be gone', async () => !(await replicaPods(cluster)).some((pod) => lost.includes(idOf(pod))), slow);
      expect((await svc.service('web')).replicasReady).toBe(3);
    });
  });
});
