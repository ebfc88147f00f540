import { expect, test } from 'vitest';
import { addReplicaUser } from '../support/kubernetes-provider.ts';
import { describeKubernetes, type TestCluster } from '../support/kubernetes.ts';
import { waitFor } from '../support/wait-for.ts';
import { nothingLeft, webFiles, withKubernetesClusters } from './cluster-world.ts';

const slow = { timeoutMs: 240_000, everyMs: 200 };

interface Condition {
  readonly type: string;
  readonly status: string;
}

interface Listed {
  readonly items: readonly {
    readonly metadata: { readonly name: string; readonly deletionTimestamp?: string; readonly labels?: Readonly<Record<string, string>> };
    readonly spec: { readonly minAvailable?: number; readonly nodeName?: string };
    readonly status: { readonly disruptionsAllowed?: number; readonly conditions?: readonly Condition[] };
  }[];
}

/** Names of a service's pods by node that are ready for Kubernetes and are not ending. */
async function readyPods(cluster: TestCluster, service: string): Promise<readonly { readonly name: string; readonly node: string }[]> {
  const { items } = await cluster.request<Listed>('GET', `/api/v1/namespaces/default/pods?labelSelector=svc-service%3D${service}`);
  return items.flatMap(({ metadata, spec, status }) => {
    const isReady = status.conditions?.some(({ type, status: value }) => type === 'Ready' && value === 'True') === true;
    return isReady && metadata.deletionTimestamp === undefined ? [{ name: metadata.name, node: spec.nodeName ?? '' }] : [];
  });
}

/** `[minAvailable, disruptionsAllowed]` of all budgets. */
async function budgets(cluster: TestCluster): Promise<readonly (readonly (number | undefined)[])[]> {
  const { items } = await cluster.request<Listed>('GET', '/apis/policy/v1beta1/namespaces/default/poddisruptionbudgets');
  return items.map(({ spec, status }) => [spec.minAvailable, status.disruptionsAllowed]);
}

/** The smallest number of ready pods of the service while the work goes on. */
async function fewestReady(cluster: TestCluster, work: Promise<unknown>): Promise<number> {
  const progress = { isOver: false };
  const ended = work.finally(() => {
    progress.isOver = true;
  });
  let fewest = Number.POSITIVE_INFINITY;
  while (!progress.isOver) fewest = Math.min(fewest, (await readyPods(cluster, 'web')).length);
  await ended;
  return fewest;
}

const drain = (cluster: TestCluster, node: string): Promise<string> =>
  cluster.kubectl('drain', node, '--ignore-daemonsets', '--delete-emptydir-data', '--force', '--timeout=240s');

describeKubernetes('nodes', 'drains of nodes with replicas', () => {
  test('two drains at once end one replica after the other, and a single replica blocks none', { timeout: 900_000 }, async () => {
    await withKubernetesClusters(
      [{ name: 'one', nodes: 3, audit: true }],
      async ({ svc, clusters: [cluster] }) => {
        if (cluster === undefined) throw new Error('there is one');
        const resources = ['  infra: k8s', '  cpus: 0.2+', '  memory: 0.2+'];
        await svc.ok(['serve', 'up', webFiles(svc, 3, resources), '-n', 'web', '--yes']);
        await waitFor('the pods to be ready', async () => (await readyPods(cluster, 'web')).length === 3, slow);
        await waitFor('the budget', async () => JSON.stringify(await budgets(cluster)) === '[[2,1]]', {
          ...slow,
          describe: () => 'no budget',
        });
        const before = await readyPods(cluster, 'web');
        expect(new Set(before.map(({ node }) => node)).size).toBe(3);
        expect(await fewestReady(cluster, Promise.all([drain(cluster, 'node1'), drain(cluster, 'node2')]))).toBe(2);
        await waitFor('all replicas on the last node', async () => (await readyPods(cluster, 'web')).length === 3, slow);
        const after = await readyPods(cluster, 'web');
        expect(after.map(({ node }) => node)).toEqual(['node3', 'node3', 'node3']);

        await svc.ok(['serve', 'down', 'web', '--yes'], { timeoutMs: 120_000 });
        await svc.ok(['serve', 'up', webFiles(svc, 1, resources), '-n', 'solo', '--yes']);
        await waitFor('the pod to be ready', async () => (await readyPods(cluster, 'solo')).length === 1, slow);
        await cluster.kubectl('uncordon', 'node1');
        await drain(cluster, 'node3');
        await waitFor('the replacement', async () => (await readyPods(cluster, 'solo')).some(({ node }) => node === 'node1'), slow);
        await svc.ok(['serve', 'down', 'solo', '--yes'], { timeoutMs: 120_000 });
        const calls = cluster.auditLog().filter(({ user, resource = '' }) => user.startsWith('svc-') && /status|budgets/.test(resource));
        expect(
          [...new Set(calls.filter(({ code = 0 }) => code < 400).map(({ verb, resource }) => `${verb} ${resource}`))].toSorted(),
        ).toEqual(['delete poddisruptionbudgets', 'list poddisruptionbudgets', 'patch poddisruptionbudgets', 'patch pods/status']);
        // The test's user has a role of its own.
        await nothingLeft([cluster], (object) => !object.startsWith('role'));
      },
      { user: (cluster) => addReplicaUser(cluster) },
    );
  });
});
