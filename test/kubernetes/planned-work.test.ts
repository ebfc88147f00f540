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
  downAll,
  webService,
  withController,
  type World,
} from './controller-world.ts';

const perSecond = 200;
/** A larger share did not just meet the close of idle connections. A busy machine sees such a close late. */
const maxRepeatedShare = 0.005;

/** Runs an operation on the cluster under load; returns the outcomes of the requests that ended meanwhile. */
async function underLoad(what: string, url: string, act: () => Promise<void>): Promise<readonly string[]> {
  const load = new Requests(url, perSecond);
  const at = Date.now();
  try {
    await waitFor('an answer', () => load.repliesSince(at).size > 0, slow);
    await act();
  } finally {
    await load.stop();
  }
  const { gapMs, slowestMs, outcomes, repeated } = load.figuresSince(at);
  printFigures(what, { tookMs: Date.now() - at, gapMs, slowestMs, repeated, outcomes: JSON.stringify(outcomes) });
  expect(repeated).toBeLessThan(maxRepeatedShare * Object.values(outcomes).reduce((sum, count) => sum + count, 0));
  return Object.keys(outcomes);
}

/** Waits until both balancers serve and a controller leads. */
async function settled({ svc, cluster }: World): Promise<void> {
  await waitFor(
    'two balancers to serve',
    async () => (await podsWith(cluster, 'svc-balancer-')).filter(({ isReady }) => isReady).length === 2,
    slow,
  );
  await waitFor('a leader', async () => (await leaderPod(cluster))?.isReady, slow);
  await readyReplicas(svc, 2);
}

const balancerAccount = 'system:serviceaccount:default:svc-balancer';

/** Lists the permissions of the balancers' account on sensitive resources; must be empty. */
async function rightsOfBalancers({ cluster }: World): Promise<readonly string[]> {
  const resources = [
    'pods',
    'pods/status',
    'pods/exec',
    'secrets',
    'configmaps',
    'services',
    'endpoints',
    'leases',
    'deployments',
    'roles',
  ];
  const verbs = ['get', 'list', 'create', 'update', 'patch', 'delete'];
  const asked = resources.flatMap((resource) => verbs.map((verb) => [verb, resource] as const));
  const answers = await Promise.all(
    asked.map(async ([verb, resource]) => {
      const group = { leases: 'coordination.k8s.io', deployments: 'apps', roles: 'rbac.authorization.k8s.io' }[resource] ?? '';
      const [name = '', subresource = ''] = resource.split('/');
      const { status } = await cluster.request<{ readonly status: { readonly allowed: boolean } }>(
        'POST',
        '/apis/authorization.k8s.io/v1/subjectaccessreviews',
        {
          apiVersion: 'authorization.k8s.io/v1',
          kind: 'SubjectAccessReview',
          spec: {
            user: balancerAccount,
            groups: ['system:serviceaccounts', 'system:serviceaccounts:default', 'system:authenticated'],
            resourceAttributes: { namespace: 'default', verb, group, resource: name, subresource },
          },
        },
      );
      return status.allowed ? [`${verb} ${resource}`] : [];
    }),
  );
  return answers.flat();
}

describeKubernetes('nodes', 'planned work on an in-cluster controller', () => {
  test('a restart, an upgrade, a node drain, updates and a rollback lose no request', { timeout: 1_800_000 }, async () => {
    await withController(
      () => ['balancers: 2', 'endpoint_service: NodePort', 'resources: {infra: k8s/prod, disk_size: 50}'],
      async (world) => {
        const { svc, cluster } = world;
        const { url, file } = await webService(world);
        await settled(world);
        const [balancer] = await podsWith(cluster, 'svc-balancer-');
        expect(await rightsOfBalancers(world)).toEqual([]);
        await expect(cluster.kubectl('exec', balancer?.name ?? '', '--', 'ls', '/var/run/secrets/kubernetes.io')).rejects.toThrow(
          'No such file',
        );
        await expect(
          cluster.kubectl('label', 'pod', balancer?.name ?? '', 'svc-serving=false', '--overwrite', `--as=${balancerAccount}`),
        ).rejects.toThrow('Forbidden');
        // As older versions created it.
        const metadata = { name: 'svc-balancer', namespace: 'default' };
        const rules = [{ apiGroups: [''], resources: ['pods'], verbs: ['get', 'list', 'watch', 'patch'] }];
        await cluster.request('PATCH', '/apis/rbac.authorization.k8s.io/v1/namespaces/default/roles/svc-balancer', { metadata, rules });
        await waitFor('the right of before', async () => (await rightsOfBalancers(world)).includes('patch pods'), slow);
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
        await waitFor('the right to be taken away', async () => (await rightsOfBalancers(world)).length === 0, slow);
        const leader = await leaderPod(cluster);
        const node = `node${leader === undefined ? 0 : nodeNumber(leader)}`;
        const drained = await underLoad('node of the leader drained', url, async () => {
          await cluster.kubectl('drain', node, '--ignore-daemonsets', '--delete-emptydir-data', '--force', '--timeout=120s');
          await cluster.kubectl('uncordon', node);
          await settled(world);
        });
        expect(drained).toEqual(['200']);
        const original = readFileSync(file, 'utf8');
        const modes = [['rolling'], ['canary', '--steps', '50', '--bake', '5s'], ['blue-green', '--bake', '1s']];
        for (const [index, mode] of modes.entries()) {
          const version = index + 2;
          const updated = await underLoad(`service updated: ${mode.join(' ')}`, url, async () => {
            writeFileSync(file, original.replace('run: ', `envs: {RELEASE: "${version}"}\nrun: `));
            await svc.ok(['serve', 'update', 'web', file, '--mode', ...mode, '--yes', '--wait']);
            await settled(world);
          });
          expect([updated, (await svc.service('web')).activeVersions]).toEqual([['200'], [version]]);
        }
        const back = await underLoad('service rolled back', url, async () => {
          await svc.ok(['serve', 'rollback', 'web', '--yes', '--wait']);
          await settled(world);
        });
        expect([back, (await svc.service('web')).activeVersions]).toEqual([['200'], [5]]);
        await downAll(world);
      },
    );
  });
});
