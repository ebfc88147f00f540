import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { printFigures } from '../support/figures.ts';
import { describeKubernetes } from '../support/kubernetes.ts';
import { Requests } from '../support/requests.ts';
import { waitFor } from '../support/wait-for.ts';
import {
  leaderPod,
  nodeNumber,
  podsWith,
  readyReplicas,
  slow,
  takeDown,
  webService,
  withController,
  type World,
} from './controller-world.ts';

const perSecond = 200;

/** Does something to the cluster under load; gives what became of the requests that ended meanwhile. */
async function underLoad(what: string, url: string, act: () => Promise<void>): Promise<readonly string[]> {
  const load = new Requests(url, perSecond);
  const at = Date.now();
  try {
    await waitFor('an answer', () => load.repliesSince(at).size > 0, slow);
    await act();
  } finally {
    await load.stop();
  }
  const { gapMs, slowestMs, outcomes } = load.figuresSince(at);
  printFigures(what, { tookMs: Date.now() - at, gapMs, slowestMs, outcomes: JSON.stringify(outcomes) });
  return Object.keys(outcomes);
}

/** Both balancers serve, and somebody leads. */
async function settled({ svc, cluster }: World): Promise<void> {
  await waitFor(
    'two balancers to serve',
    async () => (await podsWith(cluster, 'svc-balancer-')).filter(({ isReady }) => isReady).length === 2,
    slow,
  );
  await waitFor('a leader', async () => (await leaderPod(cluster))?.isReady, slow);
  await readyReplicas(svc, 2);
}

describeKubernetes('nodes', 'work on a controller in a cluster that was planned', () => {
  test('a restart, an upgrade and a node that is drained lose no request', { timeout: 600_000 }, async () => {
    await withController(
      () => ['balancers: 2', 'endpoint_service: NodePort', 'resources: {infra: k8s/prod, disk_size: 50}'],
      async (world) => {
        const { svc, cluster } = world;
        const { url } = await webService(world);
        await settled(world);
        const restarted = await underLoad('controller restarted', url, async () => {
          await svc.ok(['controller', 'restart']);
          await settled(world);
        });
        expect(restarted).toEqual(['200']);
        const config = join(svc.home, 'config.yaml');
        writeFileSync(config, readFileSync(config, 'utf8').replace('disk_size: 50', 'disk_size: 50, memory: 1'));
        const upgraded = await underLoad('controller upgraded', url, async () => {
          await svc.ok(['controller', 'upgrade']);
          await settled(world);
        });
        expect(upgraded).toEqual(['200']);
        const leader = await leaderPod(cluster);
        const node = `node${leader === undefined ? 0 : nodeNumber(leader)}`;
        const drained = await underLoad('node of the leader drained', url, async () => {
          await cluster.kubectl('drain', node, '--ignore-daemonsets', '--delete-emptydir-data', '--force', '--timeout=120s');
          await cluster.kubectl('uncordon', node);
          await settled(world);
        });
        expect(drained).toEqual(['200']);
        await takeDown(world);
      },
    );
  });
});
