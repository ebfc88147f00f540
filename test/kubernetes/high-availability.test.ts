import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import type { ServiceView } from '../../src/api/contract.ts';
import { controllerImage, controllerImageName } from '../support/controller-image.ts';
import { withSvc, type Svc } from '../support/e2e.ts';
import { printFigures } from '../support/figures.ts';
import { debianImage, describeKubernetes, withKubernetes, type PodView, type TestCluster } from '../support/kubernetes.ts';
import { startPostgres, whyNoPostgres } from '../support/postgres.ts';
import { Requests } from '../support/requests.ts';
import { waitFor } from '../support/wait-for.ts';
import { nothingLeft, webFiles } from './cluster-world.ts';

const perSecond = 200;
const slow = { timeoutMs: 240_000, everyMs: 250 } as const;

/** A controller that survives its node, in a cluster of three, and the command line of whoever brought it up. */
interface World {
  readonly svc: Svc;
  readonly cluster: TestCluster;
}

async function withController(
  controller: (cluster: TestCluster) => readonly string[],
  use: (world: World) => Promise<void>,
): Promise<void> {
  const { archive } = await controllerImage();
  await withKubernetes({ name: 'prod', nodes: 3, audit: true }, async (cluster) => {
    await cluster.loadImage(archive);
    await cluster.addVolume('state', { gb: 300 });
    const settings = ['high_availability: true', `image: ${controllerImageName}`, ...controller(cluster)].map((line) => `    ${line}`);
    const config = ['serve:', '  controller:', ...settings, `kubernetes: {image: ${debianImage}}`, ''].join('\n');
    // A command waits for the next leader while there is none.
    const options = { env: { KUBECONFIG: cluster.kubeconfig }, timeoutMs: 400_000 };
    await withSvc(async (svc) => {
      writeFileSync(join(svc.home, 'config.yaml'), config);
      await use({ svc, cluster });
    }, options);
  });
}

/** Waits until so many replicas are ready; while nobody leads a command may fail. */
async function readyReplicas(svc: Svc, replicas: number): Promise<ServiceView> {
  let last: unknown;
  const look = async (): Promise<ServiceView | false> => {
    try {
      const service = await svc.service('web');
      last = service.replicas.map(({ id, status }) => `${id} ${status}`);
      return service.replicasReady >= replicas && service;
    } catch (error) {
      last = error;
      return false;
    }
  };
  return waitFor(`${replicas} ready replicas`, look, { timeoutMs: 300_000, everyMs: 500, describe: () => last });
}

/** A service that has scaled itself to three replicas under the load of the test. */
async function webService({ svc, cluster }: World): Promise<{ readonly url: string; readonly file: string }> {
  const policy = [
    'min_replicas: 2',
    'max_replicas: 3',
    'target_qps_per_replica: 20',
    'upscale_delay_seconds: 5',
    'downscale_delay_seconds: 600',
  ];
  const template = webFiles(svc, 2, ['  infra: k8s', '  cpus: 0.2+', '  memory: 0.2+']);
  const file = svc.file(
    'web/service.yaml',
    [
      'service:',
      '  readiness_probe: /',
      '  replica_policy:',
      ...policy.map((line) => `    ${line}`),
      'resources: {infra: k8s, ports: 8080, cpus: 0.2+, memory: 0.2+}',
      'workdir: .',
      'run: exec python3 server.py',
      '',
    ].join('\n'),
  );
  expect(file).toBe(template);
  await svc.ok(['serve', 'up', file, '-n', 'web', '--yes']);
  await readyReplicas(svc, 2);
  const { spec } = await cluster.request<{ readonly spec: { readonly clusterIP: string } }>(
    'GET',
    '/api/v1/namespaces/default/services/svc-endpoints',
  );
  return { url: `http://${spec.clusterIP}:30001/`, file };
}

async function podsWith(cluster: TestCluster, prefix: string): Promise<readonly PodView[]> {
  return (await cluster.pods('default')).filter(({ name }) => name.startsWith(prefix));
}

const nodeNumber = ({ node = '' }: PodView): number => Number(node.replace('node', ''));

/** Brings the controller and its balancers up on these nodes; afterwards the others are free as well. */
async function startOn({ svc, cluster }: World, nodes: readonly number[]): Promise<void> {
  const others = [1, 2, 3].filter((node) => !nodes.includes(node)).map((node) => `node${node}`);
  await cluster.kubectl('cordon', ...others);
  await svc.ok(['controller', 'start']);
  await cluster.kubectl('uncordon', ...others);
}

/** Balancers that serve, but for one that a node has taken with it. */
async function readyBalancersOff(cluster: TestCluster, lost: number): Promise<readonly PodView[]> {
  return (await podsWith(cluster, 'svc-balancer-')).filter((pod) => pod.isReady && nodeNumber(pod) !== lost);
}

/** The pod that leads, by the Lease. */
async function leaderPod(cluster: TestCluster): Promise<PodView | undefined> {
  const path = '/apis/coordination.k8s.io/v1/namespaces/default/leases/svc-controller';
  const { spec } = await cluster.request<{ readonly spec: { readonly holderIdentity: string } }>('GET', path);
  return (await cluster.pods('default')).find(({ name }) => spec.holderIdentity.startsWith(`${name}_`));
}

/** Replicas that are ready, by their ids. */
const readyIds = ({ replicas }: ServiceView): readonly number[] => replicas.filter(({ status }) => status === 'READY').map(({ id }) => id);

/** Names of pods that were made for each replica, by the API server's own record. */
function podsMade(cluster: TestCluster): ReadonlyMap<string, ReadonlySet<string>> {
  const made = new Map<string, Set<string>>();
  for (const { verb, resource, name, code } of cluster.auditLog()) {
    const id = /^svc-web-(\d+)-/.exec(name ?? '')?.[1];
    if (resource !== 'pods' || id === undefined || code !== 201 || !['create', 'patch'].includes(verb)) continue;
    made.set(id, (made.get(id) ?? new Set()).add(name ?? ''));
  }
  return made;
}

/** Of every replica one pod was made, ever. */
function expectNoneTwice(cluster: TestCluster): void {
  for (const [id, names] of podsMade(cluster)) expect({ id, pods: names.size }).toEqual({ id, pods: 1 });
}

/** Takes everything down as a user does; nothing of it is left in the cluster. A node that was lost comes back before: the pods of one that is away are waited for. */
async function takeDown({ svc, cluster }: World): Promise<void> {
  for (const node of [1, 2, 3]) if (!(await cluster.isNodeReady(node))) await cluster.startNode(node);
  expect((await svc.run(['controller', 'down', '--yes'])).stderr).toContain('still looks after: web');
  await svc.ok(['serve', 'down', 'web', '--yes']);
  await svc.ok(['controller', 'down', '--yes']);
  // The class of the test bed's own disk is called like something of ours.
  await nothingLeft([cluster], (object) => !object.startsWith('storageclasses.storage.k8s.io '));
}

describeKubernetes('nodes', 'a controller that survives its node', () => {
  test(
    'with two balancers an endpoint answers on while the node of the controller and of one of them dies',
    { timeout: 600_000 },
    async () => {
      await withController(
        () => ['balancers: 2', 'resources: {infra: k8s/prod, disk_size: 50}'],
        async (world) => {
          const { svc, cluster } = world;
          // So that one node has both.
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
            expect(gapMs).toBeLessThan(5_000);
            // But for requests in flight on the lost node, which end without an answer: never with one that says no.
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
          await takeDown(world);
        },
      );
    },
  );

  test(
    'with one balancer on the same node the endpoint answers again soon after it was scheduled elsewhere',
    { timeout: 600_000 },
    async () => {
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
            expect(answeredAfterMs).toBeLessThan(30_000);
            const after = await readyReplicas(svc, 3);
            expect(readyIds(after)).toEqual(readyIds(before));
            expect({ version: after.version, target: after.targetReplicas }).toEqual({ version: before.version, target: 3 });
            expectNoneTwice(cluster);
          } finally {
            await load.stop();
          }
          await takeDown(world);
        },
      );
    },
  );
});

/** `10.N.0.1` is this computer as pods see it. */
describeKubernetes('nodes', 'two controllers that share a state in PostgreSQL', () => {
  test.skipIf(whyNoPostgres() !== undefined)(
    'a leader that stood still for a minute calls nobody afterwards',
    { timeout: 600_000 },
    async () => {
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
              if (leader?.ip === undefined) throw new Error('nobody leads');
              await cluster.pauseNode(nodeNumber(leader));
              const pausedAt = Date.now();
              await waitFor('the other one to lead', async () => (await leaderPod(cluster))?.name !== leader.name, slow);
              const takenOverMs = Date.now() - pausedAt;
              await sleep(60_000 - takenOverMs);
              // From before it goes on: what a former leader does, it does in its first moment.
              const resumedAt = Date.now();
              await cluster.resumeNode(nodeNumber(leader));
              await cluster.nodeReady(nodeNumber(leader));
              await sleep(10_000);
              const calls = cluster.auditLog().filter(({ at, sourceIps }) => at > resumedAt && sourceIps.includes(leader.ip ?? ''));
              const acting = calls.filter(({ resource }) => resource !== 'leases');
              printFigures('leader paused for a minute', { takenOverMs, callsAfterwards: acting.length });
              expect(acting).toEqual([]);
              await readyReplicas(svc, 2);
              expectNoneTwice(cluster);
            } finally {
              await load.stop();
            }
            await takeDown(world);
          },
        );
      } finally {
        await postgres.close();
        rmSync(folder, { recursive: true });
      }
    },
  );
});
