import { expect, test } from 'vitest';
import type { ReplicaView, ServiceView } from '../../src/api/contract.ts';
import { report } from '../support/figures.ts';
import { describeKubernetes, type TestCluster } from '../support/kubernetes.ts';
import { Requests, type Figures } from '../support/requests.ts';
import { waitFor } from '../support/wait-for.ts';
import { nothingLeft, webFiles, withKubernetesClusters } from './cluster-world.ts';

const seconds = (ms: number): string => `${(ms / 1_000).toFixed(1)} s`;

/** Runs `fault` under load and reports its cost. */
async function underLoad(what: string, load: Requests, fault: () => Promise<void>): Promise<Figures> {
  const at = Date.now();
  await fault();
  const figures = load.figuresSince(at);
  const { gapMs, slowestMs, outcomes } = figures;
  report(
    `${what}: ${seconds(Date.now() - at)}, no answer for at most ${seconds(gapMs)}, slowest ${seconds(slowestMs)}, ${JSON.stringify(outcomes)}`,
  );
  return figures;
}

async function answersFrom(load: Requests, id: number): Promise<void> {
  const since = Date.now();
  await waitFor(`an answer of replica ${id}`, () => load.repliesSince(since).has(`replica ${id}`));
}

const oneIn = (service: ServiceView, region: string): ReplicaView => {
  const found = service.replicas.find((one) => one.region === region && one.status === 'READY');
  if (found === undefined) throw new Error(`no ready replica in ${region}`);
  return found;
};

/** Returns the replicas that have a pod, by the number of its node. */
async function replicasByNode(cluster: TestCluster, { replicas }: ServiceView): Promise<ReadonlyMap<number, readonly number[]>> {
  const pods = await cluster.pods();
  const ready = replicas.filter(({ status }) => status === 'READY').map(({ id }) => id);
  return Map.groupBy(ready, (id) => Number(pods.find(({ name }) => name.includes(`-${id}-`))?.node?.replace('node', '')));
}

/** How long a replica may fail its probes while its provider does not answer, seconds. */
const failing = '  readiness_probe: {path: /, consecutive_failure_threshold_timeout: 20}';

describeKubernetes('nodes', 'replicas as pods', () => {
  test('are balanced, replaced after a pod or node loss, and leave nothing', async () => {
    await withKubernetesClusters([{ name: 'a', nodes: 2 }], async ({ svc, clusters }) => {
      const [cluster] = clusters;
      if (cluster === undefined) throw new Error('no cluster');
      const file = webFiles(svc, 3, ['  infra: k8s/a', '  cpus: 0.5+', '  memory: 1+'], ['  graceful_termination: 5']);
      const at = Date.now();
      const url = (await svc.ok(['serve', 'up', file, '-n', 'web', '--yes'])).trim();
      const service = await svc.ready('web', 3);
      report(`three pods ready ${seconds(Date.now() - at)} after up`);
      const load = new Requests(url, 50);
      try {
        await Promise.all(service.replicas.map(({ id }) => answersFrom(load, id)));
        const first = [...(await replicasByNode(cluster, service)).values()].find((ids) => ids.length === 2)?.[0];
        expect(first, 'the replicas are spread over the nodes').toBeDefined();

        const posts = new Requests(url, 50, 'POST');
        try {
          const deleted = await underLoad('a pod deleted and replaced', load, async () => {
            const pod = (await cluster.pods()).find(({ name }) => name.includes(`-${first}-`));
            await cluster.kubectl('delete', 'pod', pod?.name ?? '', '--wait=false');
            await answersFrom(load, 4);
          });
          expect(Object.keys(deleted.outcomes)).toEqual(['200']);
        } finally {
          await posts.stop();
        }
        // No client repeats these POSTs. The program ignores SIGTERM, so svc must end it after its answers.
        expect(Object.keys(posts.figuresSince(at).outcomes)).toEqual(['200']);

        const byNode = await replicasByNode(cluster, await svc.ready('web', 3));
        const [dead, lost = []] = [...byNode].toSorted(([, one], [, other]) => one.length - other.length)[0] ?? [];
        expect(byNode.size, 'the replicas are on both nodes').toBe(2);
        const figures = await underLoad(`a node with ${lost.length} of 3 replicas dead, and as many elsewhere`, load, async () => {
          await cluster.killNode(dead ?? 0);
          await answersFrom(load, 4 + lost.length);
        });
        expect(Object.keys(figures.outcomes)).toEqual(['200']);
        await svc.ready('web', 3);
      } finally {
        await load.stop();
      }
      await svc.end();
      await nothingLeft([cluster]);
    });
  });

  test('two clusters and this machine form one service, which survives a cluster loss', async () => {
    await withKubernetesClusters(
      [
        { name: 'a', nodes: 1 },
        { name: 'b', nodes: 1 },
      ],
      async ({ svc, clusters }) => {
        const [lost, kept] = clusters;
        if (lost === undefined || kept === undefined) throw new Error('no clusters');
        const anyOfLocations = [
          '  any_of:',
          '    - infra: k8s/a',
          '    - infra: k8s/b',
          '    - infra: local',
          '  cpus: 1+',
          '  memory: 1+',
        ];
        const file = webFiles(svc, 3, anyOfLocations, [failing, '  graceful_termination: 5']);
        const url = (await svc.ok(['serve', 'up', file, '-n', 'web', '--yes'])).trim();
        const service = await svc.ready('web', 3);
        expect(new Set(service.replicas.map(({ region }) => region))).toEqual(new Set(['a', 'b', 'local']));
        const load = new Requests(url, 50);
        try {
          await Promise.all(service.replicas.map(({ id }) => answersFrom(load, id)));
          const gone = oneIn(service, lost.context);
          const figures = await underLoad('a whole cluster dead and its replica elsewhere', load, async () => {
            await lost.stopApiServer();
            await lost.killNode(1);
            await answersFrom(load, 4);
          });
          expect(Object.keys(figures.outcomes)).toEqual(['200']);
          const now = await svc.ready('web', 3);
          expect(now.replicas.filter(({ status }) => status === 'READY').map(({ id }) => id)).not.toContain(gone.id);
          await lost.startApiServer();
          await lost.startNode(1);
        } finally {
          await load.stop();
        }
        await svc.end();
        await nothingLeft(clusters);
      },
    );
  });
});
