import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { KubernetesConfig } from '../../src/domain/config.ts';
import { clusterReadRules, foresightRules, replicaRules } from '../../src/domain/kubernetes/kubernetes-role.ts';
import { providerCases, type ProviderFixture } from '../../src/providers/conformance.ts';
import type { MachineSpec } from '../../src/providers/provider.ts';
import { obtainMachine } from '../../src/provision/acquire-machine.ts';
import { PlacementHistory } from '../../src/provision/placement-history.ts';
import { systemClock } from '../../src/shared/clock.ts';
import { aMachineSpec } from '../support/builders.ts';
import { openKubernetesProvider } from '../support/kubernetes-provider.ts';
import { describeKubernetes, startKubernetes, type TestCluster } from '../support/kubernetes.ts';
import { statesOf } from '../support/providers.ts';
import { withTempHome } from '../support/temp-home.ts';
import { waitFor } from '../support/wait-for.ts';
import {
  create,
  inNamespace,
  leftIn,
  offerOf,
  preemptPods,
  running,
  small,
  statusOf,
  tags,
  untilAdmitted,
  untilState,
} from './provider-world.ts';

describeKubernetes('nodes', 'a Kubernetes cluster as a provider, with the documented role and stable APIs only', () => {
  let cluster: TestCluster;

  beforeAll(async () => {
    cluster = await startKubernetes({ nodes: 2, withoutBetaApis: true, audit: true, nodeGraceSeconds: 6 });
  });
  afterAll(async () => cluster?.release());

  describe('conforms to the provider interface', () => {
    test.for(providerCases)('$name', async ({ run }) => {
      await inNamespace(cluster, async (world) => {
        const fixture: ProviderFixture = {
          provider: world.provider,
          other: world.open(),
          resources: small,
          refuse: async () => {
            await cluster.kubectl('cordon', 'node1', 'node2');
          },
          preemptAll: () => preemptPods(world),
          untilRunning: async (id) => {
            await untilState(world.provider, id, 'running');
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

  test('used resources are not offered; an unschedulable pod is refused and removed', async () => {
    await inNamespace(cluster, async (world) => {
      const offer = await offerOf(world.provider);
      const { offers, whyNone } = await world.provider.offers({ ...small, cpus: { value: 500, atLeast: true } }, { explain: true });
      expect(offers).toEqual([]);
      expect(whyNone).toMatch(/node1 has [\d.]+ of [\d.]+ CPUs free, 500 requested/);
      const large = { ...offer, cpus: 500, instanceType: '500CPU--1GB' };
      await expect(world.provider.create(large, aMachineSpec({ tags }), 'k1', {})).rejects.toMatchObject({
        refusal: 'capacity',
        scope: 'region',
        message: expect.stringMatching(/0\/2 nodes are available: 2 Insufficient cpu/),
      });
      await world.provider.release('abcd1234', {});
      expect(await leftIn(world)).toBe('');
    });
  });

  test("a group starts together or not at all, and knows its nodes' addresses", async () => {
    await inNamespace(cluster, async (world) => {
      const id = await running(world.provider, { nodes: 2 });
      const nodes = await world.provider.nodes(id, {});
      const ips = (await cluster.pods(world.namespace)).map(({ ip }) => ip);
      expect(nodes.map(({ rank }) => rank)).toEqual([0, 1]);
      expect(new Set(nodes.map(({ ip }) => ip))).toEqual(new Set(ips));
      expect((await nodes[1]?.remote.exec(['hostname']))?.stdout.trim()).toMatch(/-1$/);
      expect((await world.provider.remote(id).exec(['hostname'])).stdout.trim()).toMatch(/-0$/);
      await cluster.kubectl('-n', world.namespace, 'delete', 'pod', `${id.split('/').pop()}-1`, '--wait=false');
      expect(await untilState(world.provider, id, 'gone')).toMatchObject({ reason: 'deleted' });
      await world.provider.destroy(id, {});
      const offer = await offerOf(world.provider);
      const wide = aMachineSpec({ tags, nodes: 12 });
      await expect(world.provider.create(offer, wide, 'k2', {})).rejects.toMatchObject({ refusal: 'capacity' });
      await waitFor('no pod to be left', async () => (await cluster.pods(world.namespace)).length === 0);
    });
  });

  test("quota, class and volume claim errors are reported in the cluster's words", async () => {
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
      await expect(create(world.provider)).rejects.toMatchObject({
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
      await expect(create(world.provider, { volumes: { '/data': 'nothing' } })).rejects.toMatchObject({
        refusal: 'setup',
        message: expect.stringContaining('has no PersistentVolumeClaim nothing'),
      });
      // From a dry run: the cluster created nothing.
      expect(await leftIn(world)).toBe('');
    });
  });

  test('a replacement refused by quota skips its backoff once the old pod is gone', async () => {
    await inNamespace(cluster, async (world) => {
      const old = await running(world.provider);
      const spec = { hard: { pods: '1' } };
      await cluster.apply({ apiVersion: 'v1', kind: 'ResourceQuota', metadata: { name: 'few', namespace: world.namespace }, spec });
      await untilAdmitted(world, false);
      const history = new PlacementHistory();
      const stop = new AbortController();
      const asks: { readonly at: number; readonly refusedUntil: number }[] = [];
      let refusedUntil = 0;
      const replacement = obtainMachine(
        {
          alternatives: { order: 'any', choices: [small] },
          providers: () => Promise.resolve(statesOf(world.provider)),
          history,
          occupied: () => [],
          spec: () => aMachineSpec({ tags: { ...tags, 'svc-replica': '2' } }),
          key: 'abcd1234-2',
          clock: systemClock,
          step: async (step) => {
            if (step.type === 'asking') asks.push({ at: Date.now(), refusedUntil });
            if (step.type === 'refused') ({ until: refusedUntil } = step);
            await Promise.resolve();
          },
          background: stop.signal,
        },
        undefined,
        stop.signal,
      );
      try {
        // Wait until the backoff is long enough to distinguish its end from the end of the quota.
        await waitFor('a long pause', () => history.memory.refusals.some(({ until }) => until - Date.now() > 15_000));
        expect(history.memory.refusals[0]).toMatchObject({ kind: 'quota', scope: 'namespace', reason: expect.stringContaining('few') });
        await world.provider.destroy(old, {});
        const { machineId } = await replacement;
        const last = asks.at(-1);
        expect(last?.at).toBeLessThan(last?.refusedUntil ?? 0);
        await world.provider.destroy(machineId, {});
        // It throws while a pod is ending.
        await waitFor('the release', () =>
          world.provider.release('abcd1234', {}).then(
            () => true,
            () => false,
          ),
        );
      } finally {
        stop.abort();
        await replacement.catch(() => undefined);
      }
    });
  });

  test('preflight finds refusals before a create, and leaves nothing behind', async () => {
    await inNamespace(cluster, async (world) => {
      const preflight = async (config: Partial<KubernetesConfig> = {}, spec: Partial<MachineSpec> = {}) =>
        world.open(config).preflight(await offerOf(world.provider), aMachineSpec({ tags, ...spec }), {});
      await expect(preflight({ podConfig: { spec: { priorityClassName: 'nope' } } })).rejects.toMatchObject({
        refusal: 'setup',
        message: expect.stringContaining('no PriorityClass with name nope'),
      });
      await expect(preflight({}, { volumes: { '/data': 'nothing' } })).rejects.toMatchObject({
        refusal: 'setup',
        message: expect.stringContaining('has no PersistentVolumeClaim nothing'),
      });
      const envFrom = [{ configMapRef: { name: 'nothing' } }];
      await expect(preflight({ podConfig: { spec: { containers: [{ envFrom }] } } })).rejects.toMatchObject({
        message: expect.stringContaining('has no ConfigMap nothing'),
      });
      await expect(preflight({ podConfig: { spec: { nope: true } } })).rejects.toMatchObject({ refusal: 'setup' });
      await cluster.addVolume('weights');
      await cluster.claimVolume('weights', world.namespace);
      await expect(preflight({}, { volumes: { '/data': 'weights' } })).resolves.toBeUndefined();
      expect(await cluster.pods(world.namespace)).toEqual([]);
    });
  });

  test('a quota that requires limits refuses a pod with the settings that it admits', async () => {
    await inNamespace(cluster, async (world) => {
      const offer = await offerOf(world.provider);
      const preflight = async (config: Partial<KubernetesConfig> = {}) => world.open(config).preflight(offer, aMachineSpec({ tags }), {});
      await cluster.apply({
        apiVersion: 'v1',
        kind: 'ResourceQuota',
        metadata: { name: 'limits', namespace: world.namespace },
        spec: { hard: { 'limits.cpu': '8', 'limits.memory': '16Gi' } },
      });
      await waitFor('the quota', async () =>
        (await cluster.kubectl('-n', world.namespace, 'get', 'quota', 'limits', '-o', 'json')).includes('"used"'),
      );
      await untilAdmitted(world, false);
      await expect(preflight()).rejects.toMatchObject({ refusal: 'quota', hint: expect.stringContaining('limits: {cpu: 2, memory: 4Gi}') });
      const podConfig = { spec: { containers: [{ resources: { limits: { cpu: '2', memory: '4Gi' } } }] } };
      await expect(preflight({ podConfig })).resolves.toBeUndefined();
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
      const provider = world.open({ podConfig, provisionTimeoutSeconds: 20 });
      const id = await running(provider, { volumes: { '/data': 'models' }, labels: { note: 'any text' } });
      const { exitCode, stdout } = await provider
        .remote(id)
        .exec(['sh', '-c', 'echo $FROM_CONFIG; touch /data/a /scratch/b /svc/c; ls /data']);
      expect([exitCode, stdout]).toEqual([0, 'yes\na\n']);
      const { metadata } = await cluster.request<{ readonly metadata: Readonly<Record<string, unknown>> }>(
        'GET',
        `/api/v1/namespaces/${world.namespace}/pods/${id.split('/').pop()}`,
      );
      expect(metadata).toMatchObject({ labels: { team: 'ml', 'svc-replica': '1' }, annotations: { note: 'any text' } });
      await provider.destroy(id, {});
    });
  });

  test("an image pull fails after three tries, with the node's message", async () => {
    await inNamespace(cluster, async (world) => {
      const id = await create(world.provider, { imageId: 'docker:registry.test/none:1' });
      expect(await statusOf(world.provider, id)).toMatchObject({ state: 'booting' });
      expect(await untilState(world.provider, id, 'gone')).toMatchObject({
        reason: 'unknown',
        isHopeless: false,
        message: expect.stringMatching(/^The image registry\.test\/none:1 cannot be pulled: [^:]+\.$/),
        detail: expect.stringContaining('Failed to pull image "registry.test/none:1"'),
      });
      await world.provider.destroy(id, {});
    });
  });

  test('a watch reports removed pods, even after an API server outage', async () => {
    await inNamespace(cluster, async (world) => {
      const [one, two] = [await running(world.provider, {}, 'k1'), await running(world.provider, {}, 'k2')];
      const over = new AbortController();
      let notifications = 0;
      try {
        world.provider.watch(() => (notifications += 1), over.signal);
        await cluster.kubectl('-n', world.namespace, 'delete', 'pod', one.split('/').pop() ?? '', '--wait=false');
        await waitFor('word of the change', () => notifications > 0);
        expect(await untilState(world.provider, one, 'gone')).toMatchObject({ reason: 'deleted' });
        await cluster.stopApiServer();
        await expect(waitFor('a failure', async () => (await statusOf(world.provider, two)) === undefined)).rejects.toMatchObject({
          code: 'SVC_KUBERNETES',
        });
        await cluster.startApiServer();
        const before = notifications;
        await cluster.kubectl('-n', world.namespace, 'delete', 'pod', two.split('/').pop() ?? '', '--wait=false');
        await waitFor('word of the change after the outage', () => notifications > before);
        expect(await untilState(world.provider, two, 'gone')).toMatchObject({ reason: 'deleted' });
      } finally {
        over.abort();
      }
    });
  });

  test('release throws while pods are ending, and later removes everything', async () => {
    await inNamespace(cluster, async (world) => {
      const id = await running(world.provider);
      await expect(world.provider.release('abcd1234', {})).rejects.toMatchObject({
        code: 'SVC_PLACE_FAILED',
        message: expect.stringContaining('svc-chat-1'),
      });
      await world.provider.destroy(id, {});
      await world.provider.release('abcd1234', {});
      await world.provider.release('abcd1234', {});
      expect(await leftIn(world)).toBe('');
    });
  });

  test('without permission to read nodes the scheduler decides, and check reports it', async () => {
    await inNamespace(
      cluster,
      async (world) => {
        const { summary, details, remedies } = await world.provider.check({});
        expect(summary).toBe('1 of 1 context can be used');
        expect(details[0]?.[1]).toContain('nodes may not be read');
        expect(remedies.join()).toContain('list nodes');
        const { offers, notice } = await world.provider.offers({ ...small, cpus: { value: 500, atLeast: true } }, {});
        expect(offers).toHaveLength(1);
        expect(notice).toContain('only their schedulers know');
        const id = await running(world.provider);
        await world.provider.destroy(id, {});
      },
      false,
    );
  });

  test('a user without permissions sees the missing ones and the remedy', async () => {
    const kubeconfig = await cluster.addUser('nobody', { namespace: 'nobody', rules: [] });
    await withTempHome(async (home) => {
      const provider = openKubernetesProvider({ kubeconfigs: [kubeconfig], home });
      const { enabled, remedies } = await provider.check({});
      expect(enabled).toBe(false);
      expect(remedies.join()).toMatch(
        /may not create pods, .* in the namespace nobody; make the role with: svc check kubernetes --role \| kubectl/,
      );
    });
  });

  test('GPUs are offered by node labels, and assigned as requested', async () => {
    await cluster.fakeGpus(1, { count: 2, labels: { 'nvidia.com/gpu.product': 'NVIDIA-L4' } });
    await inNamespace(cluster, async (world) => {
      const offer = await offerOf(world.provider, { ...small, accelerator: { name: 'l4', count: 2 } });
      expect(offer).toMatchObject({ accelerator: { name: 'L4', count: 2 } });
      const id = await world.provider.create(offer, aMachineSpec({ tags }), 'k1', {});
      const [pod] = await cluster.pods(world.namespace);
      expect(pod?.node).toBe('node1');
      await waitFor('the GPUs to be taken', async () => {
        const { whyNone } = await world.provider.offers({ ...small, accelerator: { name: 'L4', count: 1 } }, {});
        return whyNone?.includes('node1 has 0 of 2 L4 free, 1 requested');
      });
      await world.provider.destroy(id, {});
    });
  });

  test("a dead node's pods are silent, name the node, and can be deleted", async () => {
    await inNamespace(cluster, async (world) => {
      await cluster.kubectl('cordon', 'node1');
      const id = await running(world.provider);
      await cluster.kubectl('uncordon', 'node1');
      await cluster.killNode(2);
      const silence = await waitFor('the silence', async () => {
        const status = await statusOf(world.provider, id);
        return status?.state === 'running' && status.silence;
      });
      expect(silence).toMatchObject({ message: expect.stringMatching(/^The node node2 is not ready/), isWidespread: false });
      await world.provider.destroy(id, {});
      expect(await world.provider.list({}, {})).toEqual([]);
      await world.provider.release('abcd1234', {});
      expect(await leftIn(world)).toBe('');
    });
    await cluster.startNode(2);
  });

  test('the role allows all calls of these tests and nothing beyond', () => {
    const calls = cluster.auditLog().filter(({ user, resource }) => user.startsWith('svc-t') && resource !== undefined);
    const used = new Set(calls.filter(({ code = 0 }) => code < 400).map(({ verb, resource }) => `${verb} ${resource}`));
    const granted = new Set(
      [...replicaRules, ...foresightRules, ...clusterReadRules].flatMap(({ resources, verbs }) =>
        resources.flatMap((resource) => verbs.map((verb) => `${verb} ${resource}`)),
      ),
    );
    expect([...used].filter((call) => !granted.has(call) && !call.startsWith('create selfsubject'))).toEqual([]);
    // The tests of remotes cover addresses of ports, those of drains the readiness of pods. For an apply that creates, the audit log says `patch`, although
    // `create` is needed as well. The same holds for streams by API servers from 1.35 on.
    const coveredByOtherTests = /services|portforward|pods.status|poddisruptionbudgets|get pods|create (?:pods|configmaps)/;
    expect([...granted].filter((call) => !used.has(call) && !coveredByOtherTests.test(call))).toEqual([]);
  });
});
