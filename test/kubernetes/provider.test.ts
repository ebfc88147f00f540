import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { KubernetesConfig } from '../../src/domain/config.ts';
import { clusterReadRules, foresightRules, replicaRules } from '../../src/domain/kubernetes-role.ts';
import { providerCases, type ProviderFixture } from '../../src/providers/conformance.ts';
import type { MachineSpec } from '../../src/providers/provider.ts';
import { aMachineSpec } from '../support/builders.ts';
import { openKubernetesPlace } from '../support/kubernetes-place.ts';
import { describeKubernetes, startKubernetes, type TestCluster } from '../support/kubernetes.ts';
import { withTempHome } from '../support/temp-home.ts';
import { waitFor } from '../support/wait-for.ts';
import {
  create,
  inNamespace,
  leftIn,
  offerOf,
  pushAside,
  running,
  small,
  statusOf,
  tags,
  untilAdmitted,
  untilState,
} from './place-world.ts';

describeKubernetes('nodes', 'a cluster as a place, with the generated role only and no beta APIs', () => {
  let cluster: TestCluster;

  beforeAll(async () => {
    cluster = await startKubernetes({ nodes: 2, withoutBetaApis: true, audit: true, nodeGraceSeconds: 6 });
  });
  afterAll(async () => cluster?.release());

  describe('does what every place does', () => {
    test.for(providerCases)('$name', async ({ run }) => {
      await inNamespace(cluster, async (world) => {
        const fixture: ProviderFixture = {
          provider: world.place,
          other: world.open(),
          resources: small,
          refuse: async () => {
            await cluster.kubectl('cordon', 'node1', 'node2');
          },
          preemptAll: () => pushAside(world),
          untilRunning: async (id) => {
            await untilState(world.place, id, 'running');
          },
        };
        try {
          await expect(run(fixture)).resolves.toBeUndefined();
        } finally {
          await cluster.kubectl('uncordon', 'node1', 'node2');
        }
      });
    });
  });

  test('what pods take is no longer offered, and a pod that finds no room is refused in the words of the scheduler and removed', async () => {
    await inNamespace(cluster, async (world) => {
      const offer = await offerOf(world.place);
      const { offers, whyNone } = await world.place.offers({ ...small, cpus: { value: 500, atLeast: true } }, { explain: true });
      expect(offers).toEqual([]);
      expect(whyNone).toMatch(/node1 has [\d.]+ of [\d.]+ CPUs free, 500 wanted/);
      const large = { ...offer, cpus: 500, instanceType: '500CPU--1GB' };
      await expect(world.place.create(large, aMachineSpec({ tags }), 'k1', {})).rejects.toMatchObject({
        refusal: 'capacity',
        scope: 'region',
        message: expect.stringMatching(/0\/2 nodes are available: 2 Insufficient cpu/),
      });
      await world.place.release('abcd1234', {});
      expect(await leftIn(world)).toBe('');
    });
  });

  test('a group starts together or not at all, and knows the addresses of its nodes', async () => {
    await inNamespace(cluster, async (world) => {
      const id = await running(world.place, { nodes: 2 });
      const nodes = await world.place.nodes(id, {});
      const ips = (await cluster.pods(world.namespace)).map(({ ip }) => ip);
      expect(nodes.map(({ rank }) => rank)).toEqual([0, 1]);
      expect(new Set(nodes.map(({ ip }) => ip))).toEqual(new Set(ips));
      expect((await nodes[1]?.remote.exec(['hostname']))?.stdout.trim()).toMatch(/-1$/);
      expect((await world.place.remote(id).exec(['hostname'])).stdout.trim()).toMatch(/-0$/);
      await cluster.kubectl('-n', world.namespace, 'delete', 'pod', `${id.split('/').pop()}-1`, '--wait=false');
      expect(await untilState(world.place, id, 'gone')).toMatchObject({ reason: 'deleted' });
      await world.place.destroy(id, {});
      const offer = await offerOf(world.place);
      const wide = aMachineSpec({ tags, nodes: 12 });
      await expect(world.place.create(offer, wide, 'k2', {})).rejects.toMatchObject({ refusal: 'capacity' });
      await waitFor('no pod to be left', async () => (await cluster.pods(world.namespace)).length === 0, { timeoutMs: 120_000 });
    });
  });

  test('a quota, a class that does not exist and a claim that is none are told in the words of the cluster', async () => {
    await inNamespace(cluster, async (world) => {
      const quota = {
        apiVersion: 'v1',
        kind: 'ResourceQuota',
        metadata: { name: 'few', namespace: world.namespace },
        spec: { hard: { pods: '0' } },
      };
      await cluster.apply(quota);
      await waitFor('the quota', async () =>
        (await cluster.kubectl('-n', world.namespace, 'get', 'quota', 'few', '-o', 'json')).includes('"used"'),
      );
      await untilAdmitted(world, false);
      await expect(create(world.place)).rejects.toMatchObject({
        refusal: 'quota',
        message: expect.stringContaining('exceeded quota: few'),
      });
      await cluster.kubectl('-n', world.namespace, 'delete', 'quota', 'few');
      await untilAdmitted(world, true);
      const podConfig = { spec: { priorityClassName: 'nope' } };
      await expect(create(world.open({ podConfig }))).rejects.toMatchObject({
        refusal: 'setup',
        message: expect.stringContaining('no PriorityClass with name nope'),
      });
      await expect(create(world.place, { volumes: { '/data': 'nothing' } })).rejects.toMatchObject({
        refusal: 'setup',
        message: expect.stringContaining('has no PersistentVolumeClaim nothing'),
      });
      // Shown to the cluster first: nothing was made.
      expect(await leftIn(world)).toBe('');
    });
  });

  test('what the cluster would refuse is known before anything is made, and what it would take leaves nothing', async () => {
    await inNamespace(cluster, async (world) => {
      const rehearse = async (config: Partial<KubernetesConfig> = {}, spec: Partial<MachineSpec> = {}) =>
        world.open(config).rehearse(await offerOf(world.place), aMachineSpec({ tags, ...spec }), {});
      await expect(rehearse({ podConfig: { spec: { priorityClassName: 'nope' } } })).rejects.toMatchObject({
        refusal: 'setup',
        message: expect.stringContaining('no PriorityClass with name nope'),
      });
      await expect(rehearse({}, { volumes: { '/data': 'nothing' } })).rejects.toMatchObject({
        refusal: 'setup',
        message: expect.stringContaining('has no PersistentVolumeClaim nothing'),
      });
      const envFrom = [{ configMapRef: { name: 'nothing' } }];
      await expect(rehearse({ podConfig: { spec: { containers: [{ envFrom }] } } })).rejects.toMatchObject({
        message: expect.stringContaining('has no ConfigMap nothing'),
      });
      await expect(rehearse({ podConfig: { spec: { nope: true } } })).rejects.toMatchObject({ refusal: 'setup' });
      await cluster.addVolume('weights');
      await cluster.claimVolume('weights', world.namespace);
      await expect(rehearse({}, { volumes: { '/data': 'weights' } })).resolves.toBeUndefined();
      expect(await cluster.pods(world.namespace)).toEqual([]);
    });
  });

  test('volumes, partial pods and labels are in the pod', async () => {
    await inNamespace(cluster, async (world) => {
      await cluster.addVolume('models');
      await cluster.claimVolume('models', world.namespace);
      const podConfig = {
        metadata: { labels: { team: 'ml' } },
        spec: {
          containers: [{ env: [{ name: 'FROM_CONFIG', value: 'yes' }], volumeMounts: [{ name: 'scratch', mountPath: '/scratch' }] }],
          volumes: [{ name: 'scratch', emptyDir: {} }],
        },
      };
      const place = world.open({ podConfig, provisionTimeoutSeconds: 20 });
      const id = await running(place, { volumes: { '/data': 'models' }, labels: { note: 'any text' } });
      const { exitCode, stdout } = await place
        .remote(id)
        .exec(['sh', '-c', 'echo $FROM_CONFIG; touch /data/a /scratch/b /svc/c; ls /data']);
      expect([exitCode, stdout]).toEqual([0, 'yes\na\n']);
      const { metadata } = await cluster.request<{ readonly metadata: Readonly<Record<string, unknown>> }>(
        'GET',
        `/api/v1/namespaces/${world.namespace}/pods/${id.split('/').pop()}`,
      );
      expect(metadata).toMatchObject({ labels: { team: 'ml', 'svc-replica': '1' }, annotations: { note: 'any text' } });
      await place.destroy(id, {});
    });
  });

  test('an image that cannot be fetched is given up after three tries, with what the node said', async () => {
    await inNamespace(cluster, async (world) => {
      const id = await create(world.place, { imageId: 'docker:registry.test/none:1' });
      expect(await statusOf(world.place, id)).toMatchObject({ state: 'booting' });
      expect(await untilState(world.place, id, 'gone', 170_000)).toMatchObject({
        reason: 'unknown',
        isHopeless: false,
        message: expect.stringMatching(/^The image registry\.test\/none:1 cannot be pulled: [^:]+\.$/),
        detail: expect.stringContaining('Failed to pull image "registry.test/none:1"'),
      });
      await world.place.destroy(id, {});
    });
  }, 240_000);

  test('a watch tells of a pod that is removed, also of one that was while the API server was away', async () => {
    await inNamespace(cluster, async (world) => {
      const [one, two] = [await running(world.place, {}, 'k1'), await running(world.place, {}, 'k2')];
      const over = new AbortController();
      let told = 0;
      try {
        world.place.watch(() => (told += 1), over.signal);
        await cluster.kubectl('-n', world.namespace, 'delete', 'pod', one.split('/').pop() ?? '', '--wait=false');
        await waitFor('word of the change', () => told > 0);
        expect(await untilState(world.place, one, 'gone')).toMatchObject({ reason: 'deleted' });
        await cluster.stopApiServer();
        await expect(waitFor('a failure', async () => (await statusOf(world.place, two)) === undefined)).rejects.toMatchObject({
          code: 'SVC_KUBERNETES',
        });
        await cluster.startApiServer();
        const before = told;
        await cluster.kubectl('-n', world.namespace, 'delete', 'pod', two.split('/').pop() ?? '', '--wait=false');
        await waitFor('word of the change after the outage', () => told > before);
        expect(await untilState(world.place, two, 'gone')).toMatchObject({ reason: 'deleted' });
      } finally {
        over.abort();
      }
    });
  });

  test('release throws while pods are ending, and then leaves nothing', async () => {
    await inNamespace(cluster, async (world) => {
      const id = await running(world.place);
      await expect(world.place.release('abcd1234', {})).rejects.toMatchObject({
        code: 'SVC_PLACE_FAILED',
        message: expect.stringContaining('svc-chat-1'),
      });
      await world.place.destroy(id, {});
      await world.place.release('abcd1234', {});
      await world.place.release('abcd1234', {});
      expect(await leftIn(world)).toBe('');
    });
  });

  test('without the right to read nodes the scheduler decides, and check says so', async () => {
    await inNamespace(
      cluster,
      async (world) => {
        const { summary, details, remedies } = await world.place.check({});
        expect(summary).toBe('1 of 1 context can be used');
        expect(details[0]?.[1]).toContain('nodes may not be read');
        expect(remedies.join()).toContain('list nodes');
        const { offers, notice } = await world.place.offers({ ...small, cpus: { value: 500, atLeast: true } }, {});
        expect(offers).toHaveLength(1);
        expect(notice).toContain('only their schedulers know');
        const id = await running(world.place);
        await world.place.destroy(id, {});
      },
      false,
    );
  });

  test('a user without rights is told which are missing, and how to get them', async () => {
    const kubeconfig = await cluster.addUser('nobody', { namespace: 'nobody', rules: [] });
    await withTempHome(async (home) => {
      const place = openKubernetesPlace({ kubeconfigs: [kubeconfig], home });
      const { enabled, remedies } = await place.check({});
      expect(enabled).toBe(false);
      expect(remedies.join()).toMatch(
        /may not create pods, .* in the namespace nobody; make the role with: svc check kubernetes --role \| kubectl/,
      );
    });
  });

  test('GPUs are offered by their labels, and given as asked for', async () => {
    await cluster.fakeGpus(1, { count: 2, labels: { 'nvidia.com/gpu.product': 'NVIDIA-L4' } });
    await inNamespace(cluster, async (world) => {
      const offer = await offerOf(world.place, { ...small, accelerator: { name: 'l4', count: 2 } });
      expect(offer).toMatchObject({ accelerator: { name: 'L4', count: 2 } });
      const id = await world.place.create(offer, aMachineSpec({ tags }), 'k1', {});
      const [pod] = await cluster.pods(world.namespace);
      expect(pod?.node).toBe('node1');
      await waitFor('the GPUs to be taken', async () => {
        const { whyNone } = await world.place.offers({ ...small, accelerator: { name: 'L4', count: 1 } }, {});
        return whyNone?.includes('node1 has 0 of 2 L4 free, 1 wanted');
      });
      await world.place.destroy(id, {});
    });
  });

  test('the pods of a node that is lost are gone, with the node named, and are taken off the record', async () => {
    await inNamespace(cluster, async (world) => {
      await cluster.kubectl('cordon', 'node1');
      const id = await running(world.place);
      await cluster.kubectl('uncordon', 'node1');
      await cluster.killNode(2);
      expect(await untilState(world.place, id, 'gone')).toMatchObject({ message: expect.stringMatching(/^The node node2 is not ready/) });
      await world.place.destroy(id, {});
      expect(await world.place.list({}, {})).toEqual([]);
      await world.place.release('abcd1234', {});
      expect(await leftIn(world)).toBe('');
    });
    await cluster.startNode(2);
  });

  test('all of that was allowed by the role, and needed all of it', () => {
    const calls = cluster.auditLog().filter(({ user, resource }) => user.startsWith('svc-t') && resource !== undefined);
    const used = new Set(calls.filter(({ code = 0 }) => code < 400).map(({ verb, resource }) => `${verb} ${resource}`));
    const given = new Set(
      [...replicaRules, ...foresightRules, ...clusterReadRules].flatMap(({ resources, verbs }) =>
        resources.flatMap((resource) => verbs.map((verb) => `${verb} ${resource}`)),
      ),
    );
    expect([...used].filter((call) => !given.has(call) && !call.startsWith('create selfsubject'))).toEqual([]);
    // Ways to ports are for the tests of remotes. Of an apply that makes something the log says `patch`, though `create` is asked for as well; so it is for
    // streams by API servers from 1.35 on.
    const elsewhere = /services|portforward|get pods|create (?:pods|configmaps)/;
    expect([...given].filter((call) => !used.has(call) && !elsewhere.test(call))).toEqual([]);
  });
});
