import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import type { ServiceView } from '../../src/api/contract.ts';
import { haNames } from '../../src/launcher/high-availability/names.ts';
import { printFigures } from '../support/figures.ts';
import { describeKubernetes, type AuditEvent, type PodView, type TestCluster } from '../support/kubernetes.ts';
import { needs } from '../support/needs.ts';
import { startPostgres } from '../support/postgres.ts';
import { Requests } from '../support/requests.ts';
import { waitFor } from '../support/wait-for.ts';
import {
  leaderPod,
  nodeNumber,
  podsWith,
  readyReplicas,
  slow,
  downAll,
  webService,
  withController,
  type World,
} from './controller-world.ts';

const perSecond = 200;

/** Deploys the controller and its balancers on these nodes; then uncordons the others. */
async function startOn({ svc, cluster }: World, nodes: readonly number[]): Promise<void> {
  const others = [1, 2, 3].filter((node) => !nodes.includes(node)).map((node) => `node${node}`);
  await cluster.kubectl('cordon', ...others);
  await svc.ok(['controller', 'start']);
  await cluster.kubectl('uncordon', ...others);
}

/** Serving balancers, except for the one on a lost node. */
async function readyBalancersOff(cluster: TestCluster, lost: number): Promise<readonly PodView[]> {
  return (await podsWith(cluster, 'svc-balancer-')).filter((pod) => pod.isReady && nodeNumber(pod) !== lost);
}

/** Ids of ready replicas. */
const readyIds = ({ replicas }: ServiceView): readonly number[] => replicas.filter(({ status }) => status === 'READY').map(({ id }) => id);

/** Names of the pods created for each replica, from the API server's audit log. */
function podsMade(cluster: TestCluster): ReadonlyMap<string, ReadonlySet<string>> {
  const made = new Map<string, Set<string>>();
  for (const { verb, resource, name, code } of cluster.auditLog()) {
    const id = /^svc-web-(\d+)-/.exec(name ?? '')?.[1];
    if (resource !== 'pods' || id === undefined || code !== 201 || !['create', 'patch'].includes(verb)) continue;
    made.set(id, (made.get(id) ?? new Set()).add(name ?? ''));
  }
  return made;
}

/** Checks that each replica ever had exactly one pod. */
function expectNoneTwice(cluster: TestCluster): void {
  for (const [id, names] of podsMade(cluster)) expect({ id, pods: names.size }).toEqual({ id, pods: 1 });
}

describeKubernetes('nodes', 'a controller that survives its node', () => {
  test("with two balancers an endpoint survives the loss of the controller's node", { timeout: 1_800_000 }, async () => {
    await withController(
      () => ['balancers: 2', 'resources: {infra: k8s/prod, disk_size: 50}'],
      async (world) => {
        const { svc, cluster } = world;
        // Ensures that one node has both.
        await startOn(world, [1, 2]);
        const { url } = await webService(world);
        const load = new Requests(url, perSecond);
        try {
          const before = await readyReplicas(svc, 3);
          const leader = await leaderPod(cluster);
          if (leader === undefined) throw new Error('nobody leads');
          const lost = nodeNumber(leader);
          const balancers = await podsWith(cluster, 'svc-balancer-');
          expect(new Set(balancers.map(nodeNumber))).toEqual(new Set([1, 2]));
          const at = Date.now();
          await cluster.killNode(lost);
          await waitFor(
            'another pod to lead',
            async () => {
              const now = await leaderPod(cluster);
              return now !== undefined && now.name !== leader.name && now.isReady;
            },
            slow,
          );
          const ledAgainMs = Date.now() - at;
          await waitFor('two balancers to serve', async () => (await readyBalancersOff(cluster, lost)).length >= 2, slow);
          const after = await readyReplicas(svc, 3);
          const { gapMs, slowestMs, outcomes } = load.figuresSince(at);
          printFigures('node of the controller and of one of two balancers killed', {
            ledAgainMs,
            gapMs,
            slowestMs,
            outcomes: JSON.stringify(outcomes),
          });
          // An endpoint that waits for the lost node would take a minute and more.
          expect(gapMs).toBeLessThan(30_000);
          // Requests in flight on the lost node end without an answer, but never with an error response.
          expect(Object.keys(outcomes).filter((outcome) => /^\d{3}\b/.test(outcome))).toEqual(['200']);
          const survivors = new Set(
            (await podsWith(cluster, 'svc-web-')).filter((pod) => nodeNumber(pod) !== lost).map(({ name }) => name.split('-')[2]),
          );
          const kept = readyIds(before).filter((id) => survivors.has(String(id)));
          expect(readyIds(after)).toEqual(expect.arrayContaining(kept));
          expect({ version: after.version, target: after.targetReplicas }).toEqual({ version: before.version, target: 3 });
          expectNoneTwice(cluster);
        } finally {
          await load.stop();
        }
        await downAll(world);
      },
    );
  });

  test('with one balancer the endpoint recovers soon after it is rescheduled', { timeout: 1_800_000 }, async () => {
    await withController(
      () => ['balancers: 1', 'resources: {infra: k8s/prod, disk_size: 50}'],
      async (world) => {
        const { svc, cluster } = world;
        await startOn(world, [1]);
        await cluster.kubectl('cordon', 'node1');
        const { url } = await webService(world);
        await cluster.kubectl('uncordon', 'node1');
        const load = new Requests(url, perSecond);
        try {
          const before = await readyReplicas(svc, 3);
          const onLost = (await podsWith(cluster, 'svc-web-')).filter((pod) => nodeNumber(pod) === 1).map(({ name }) => name.split('-')[2]);
          const keptIds = readyIds(before).filter((id) => !onLost.includes(String(id)));
          const at = Date.now();
          await cluster.killNode(1);
          await waitFor(
            'a balancer elsewhere',
            async () => (await podsWith(cluster, 'svc-balancer-')).some((pod) => pod.node !== undefined && nodeNumber(pod) !== 1),
            slow,
          );
          const scheduledAt = Date.now();
          await waitFor('an answer', () => load.repliesSince(scheduledAt).size > 0, slow);
          const answeredAfterMs = Date.now() - scheduledAt;
          const { gapMs, outcomes } = load.figuresSince(at);
          printFigures("controller's and only balancer's node killed", {
            scheduledAfterMs: scheduledAt - at,
            answeredAfterMs,
            gapMs,
            outcomes: JSON.stringify(outcomes),
          });
          const after = await readyReplicas(svc, 3);
          // The third replica may be scheduled to the node that is lost.
          expect(readyIds(after)).toEqual(expect.arrayContaining(keptIds));
          expect({ version: after.version, target: after.targetReplicas }).toEqual({ version: before.version, target: 3 });
          expectNoneTwice(cluster);
        } finally {
          await load.stop();
        }
        await downAll(world);
      },
    );
  });
});

/**
 * Calls by controllers on a node since a time, without lease calls. The API server sees a pod's address as its node's;
 * other pods there have different accounts.
 */
function controllerCalls(cluster: TestCluster, node: number, since: number): readonly AuditEvent[] {
  const account = `system:serviceaccount:default:${haNames.controllerAccount}`;
  const ip = cluster.nodeIp(node);
  return cluster
    .auditLog()
    .filter(({ at, user, resource, sourceIps }) => at > since && user === account && resource !== 'leases' && sourceIps.includes(ip));
}

/** `10.N.0.1` is this computer as pods see it. */
describeKubernetes('nodes', 'two controllers that share a state in PostgreSQL', () => {
  needs('postgres', () => {
    test('a leader that was paused for a minute makes no calls afterwards', { timeout: 1_800_000 }, async () => {
      const folder = mkdtempSync(join(tmpdir(), 'svc-hba-'));
      chmodSync(folder, 0o755);
      writeFileSync(join(folder, 'hba.conf'), 'host all all all scram-sha-256\n', { mode: 0o644 });
      const postgres = await startPostgres({ listen_addresses: '*', hba_file: join(folder, 'hba.conf') });
      const addressIn = (cluster: TestCluster): string => {
        const database = new URL(postgres.url());
        database.hostname = cluster.ownIp ?? '';
        return `database: '${database.href}'`;
      };
      try {
        await withController(
          (cluster) => ['balancers: 2', addressIn(cluster)],
          async (world) => {
            const { svc, cluster } = world;
            const { url } = await webService(world);
            const load = new Requests(url, 20);
            try {
              const leader = await leaderPod(cluster);
              if (leader === undefined) throw new Error('nobody leads');
              expect(controllerCalls(cluster, nodeNumber(leader), 0), 'what a leader does is seen').not.toEqual([]);
              await cluster.pauseNode(nodeNumber(leader));
              const pausedAt = Date.now();
              await waitFor('the other one to lead', async () => (await leaderPod(cluster))?.name !== leader.name, slow);
              const takenOverMs = Date.now() - pausedAt;
              await sleep(60_000 - takenOverMs);
              // From before it resumes: a stale leader would call in its first moment.
              const resumedAt = Date.now();
              await cluster.resumeNode(nodeNumber(leader));
              await cluster.nodeReady(nodeNumber(leader));
              await sleep(10_000);
              const acting = controllerCalls(cluster, nodeNumber(leader), resumedAt);
              printFigures('leader paused for a minute', { takenOverMs, callsAfterwards: acting.length });
              expect(acting).toEqual([]);
              await readyReplicas(svc, 2);
              expectNoneTwice(cluster);
            } finally {
              await load.stop();
            }
            await downAll(world);
          },
        );
      } finally {
        await postgres.close();
        rmSync(folder, { recursive: true });
      }
    });
  });
});
