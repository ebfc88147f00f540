import { execFileSync, fork } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readdirSync, writeFileSync, mkdirSync } from 'node:fs';
import { createConnection } from 'node:net';
import { networkInterfaces } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import {
  busyboxImage,
  debianImage,
  describeKubernetes,
  imageOfFolder,
  startKubernetes,
  withKubernetes,
  type TestCluster,
} from '../support/kubernetes.ts';
import { withTempHome } from '../support/temp-home.ts';
import { waitFor } from '../support/wait-for.ts';

/** A pod of the default namespace. */
function aPod(name: string, container: object = {}, spec: object = {}): object {
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, namespace: 'default', labels: { app: name } },
    spec: {
      containers: [{ name: 'main', image: busyboxImage, command: ['/serve.sh'], ...container }],
      terminationGracePeriodSeconds: 1,
      ...spec,
    },
  };
}

/** A container that requests GPUs. */
function gpus(count: number): object {
  return { resources: { limits: { 'nvidia.com/gpu': String(count) } } };
}

/** Replicas of a server, on different nodes if possible, and their Service. */
function aDeployment(name: string, replicas: number, serviceType = 'NodePort'): readonly object[] {
  const labels = { app: name };
  const topologySpreadConstraints = [
    { maxSkew: 1, topologyKey: 'kubernetes.io/hostname', whenUnsatisfiable: 'ScheduleAnyway', labelSelector: { matchLabels: labels } },
  ];
  const container = {
    name: 'main',
    image: busyboxImage,
    command: ['/serve.sh'],
    readinessProbe: { httpGet: { path: '/health/', port: 8080 }, periodSeconds: 1 },
  };
  const template = { metadata: { labels }, spec: { containers: [container], topologySpreadConstraints, terminationGracePeriodSeconds: 1 } };
  return [
    {
      apiVersion: 'apps/v1',
      kind: 'Deployment',
      metadata: { name, namespace: 'default' },
      spec: { replicas, selector: { matchLabels: labels }, template },
    },
    {
      apiVersion: 'v1',
      kind: 'Service',
      metadata: { name, namespace: 'default' },
      spec: { type: serviceType, selector: labels, ports: [{ port: 80, protocol: 'TCP', targetPort: 8080 }] },
    },
  ];
}

async function readyPods(
  cluster: TestCluster,
  prefix: string,
  count: number,
  matchesNode: (node: string | undefined) => boolean = () => true,
) {
  return waitFor(
    `${count} ready pods of ${prefix}`,
    async () => {
      const ready = (await cluster.pods('default')).filter(
        ({ name, isReady, node }) => name.startsWith(prefix) && isReady && matchesNode(node),
      );
      return ready.length >= count && ready;
    },
    { everyMs: 200, describe: () => cluster.kubectl('get', 'pods,events', '-A', '-o', 'wide') },
  );
}

/** Returns the answer at a URL; waits until there is one. */
function answerOf(url: string): Promise<string> {
  return waitFor(`an answer of ${url}`, () =>
    fetch(url, { signal: AbortSignal.timeout(2000) }).then(
      (reply) => reply.text(),
      () => undefined,
    ),
  );
}

/** Returns how an attempt to connect ends within a second. */
function connecting(host: string, port: number): Promise<string> {
  return new Promise((resolve) => {
    const socket = createConnection({ host, port });
    const settle = (how: string) => () => {
      socket.destroy();
      resolve(how);
    };
    socket.setTimeout(1000, settle('silence'));
    socket.on('connect', settle('connected'));
    socket.on('error', (error: NodeJS.ErrnoException) => settle(error.code ?? 'error')());
  });
}

/** The network device for packets to an address; `none` where a route refuses them. */
function deviceFor(address: string): string {
  try {
    return /dev (\S+)/.exec(execFileSync('ip', ['route', 'get', address], { encoding: 'utf8', stdio: 'pipe' }))?.[1] ?? 'none';
  } catch {
    return 'none';
  }
}

/** Programs that have a folder in their command line or among their open files. */
function processesOf(dir: string): readonly string[] {
  return execFileSync('ps', ['-eo', 'pid,args'], { encoding: 'utf8' })
    .split('\n')
    .filter((line) => `${line} `.match(new RegExp(`${dir}[/ ]`)) !== null);
}

function expectGone({ dir, ownIp }: TestCluster): void {
  expect(existsSync(dir)).toBe(false);
  expect(processesOf(dir)).toEqual([]);
  if (ownIp === undefined) return;
  const number = ownIp.split('.')[1];
  expect(Object.keys(networkInterfaces()).filter((name) => name.startsWith(`svck${number}`))).toEqual([]);
  expect(execFileSync('ip', ['route'], { encoding: 'utf8' })).not.toContain(`10.${number}.`);
  expect(execFileSync('nft', ['list', 'tables'], { encoding: 'utf8' })).not.toContain(`svck${number}`);
  const groups = readdirSync('/sys/fs/cgroup').flatMap((one) => readdirSync(join('/sys/fs/cgroup', one), { withFileTypes: true }));
  expect(groups.map(({ name }) => name).filter((name) => name.startsWith(`svc-k${number}-`))).toEqual([]);
}

describeKubernetes('nodes', 'a cluster with two nodes', () => {
  let cluster: TestCluster;
  beforeAll(async () => {
    cluster = await startKubernetes({ name: 'two', nodes: 2, audit: true });
  });
  afterAll(async () => {
    await cluster.release();
    expectGone(cluster);
  });

  test('is reachable at addresses of pods, services, nodes and load balancers', async () => {
    await cluster.apply(...aDeployment('web', 2, 'LoadBalancer'));
    const pods = await readyPods(cluster, 'web', 2);
    expect(new Set(pods.map(({ node }) => node)).size).toBe(2);
    for (const { name, ip } of pods) expect(await answerOf(`http://${ip}:8080/`)).toBe(`${name}\n`);
    const { spec } = await cluster.request<{ spec: { clusterIP: string; ports: { nodePort: number }[] } }>(
      'GET',
      '/api/v1/namespaces/default/services/web',
    );
    const loadBalancer = await cluster.assignLoadBalancer('default', 'web');
    const nodeIp = cluster.ownIp?.replace(/1$/, '11');
    for (const host of [spec.clusterIP, loadBalancer, `${nodeIp}:${spec.ports[0]?.nodePort}`]) {
      expect(await answerOf(`http://${host}/`)).toMatch(/^web-/);
    }
  });

  test("has images with Python and Node, and accepts a test's own images", async () => {
    await withTempHome(async (home) => {
      const root = join(home, 'root');
      mkdirSync(join(root, 'data'), { recursive: true });
      writeFileSync(join(root, 'data/said'), 'by a test\n');
      await imageOfFolder(join(home, 'image.tar'), 'said:1', root, { Cmd: ['/none'] });
      await cluster.loadImage(join(home, 'image.tar'));
    });
    await cluster.apply(
      aPod('debian', { image: debianImage, command: ['python3', '-m', 'http.server', '8080'] }),
      // The image has no program: the error must be about the start, not about the image.
      aPod('said', { image: 'said:1', command: undefined }, { restartPolicy: 'Never' }),
      aPod('unknown', { image: 'registry.test/none:1' }),
    );
    await readyPods(cluster, 'debian', 1);
    expect(await cluster.kubectl('exec', 'debian', '--', 'node', '-p', '6 * 7')).toBe('42\n');
    const reason = async (pod: string): Promise<string> =>
      cluster.kubectl('get', 'pod', pod, '-o', 'jsonpath={.status.containerStatuses[0].state.*.reason}');
    await waitFor('what became of it', async () => /StartError|ContainerCannotRun|RunContainerError/.test(await reason('said')), {
      describe: () => cluster.kubectl('describe', 'pod', 'said'),
    });
    await waitFor('an image that is nowhere', async () => /ErrImagePull|ImagePullBackOff/.test(await reason('unknown')));
    await cluster.kubectl('delete', 'pod', '--wait=false', 'debian', 'said', 'unknown');
  });

  test('has disks that both nodes share', async () => {
    await cluster.addVolume('disk');
    await cluster.claimVolume('data');
    const volumes = [{ name: 'data', persistentVolumeClaim: { claimName: 'data' } }];
    const volumeMounts = [{ name: 'data', mountPath: '/data' }];
    const on = (nodeName: string): object => ({ volumes, nodeName, restartPolicy: 'Never' });
    await cluster.apply(aPod('writer', { volumeMounts, command: ['sh', '-c', 'echo kept > /data/file'] }, on('node1')));
    await waitFor(
      'the writer',
      async () => (await cluster.pods('default')).some(({ name, phase }) => name === 'writer' && phase === 'Succeeded'),
      {
        describe: () => cluster.kubectl('describe', 'pod', 'writer'),
      },
    );
    await cluster.apply(aPod('reader', { volumeMounts, command: ['cat', '/data/file'] }, on('node2')));
    const said = await waitFor('the reader', async () => (await cluster.kubectl('logs', 'reader').catch(() => '')) || undefined);
    expect(said).toBe('kept\n');
    await cluster.kubectl('delete', 'pod', '--wait=false', 'writer', 'reader');
  });

  test('lets a user do exactly what the role allows, and audits calls', async () => {
    const rules = [{ apiGroups: [''], resources: ['configmaps'], verbs: ['get', 'create'] }];
    const users = {
      alice: await cluster.addUser('alice', { namespace: 'team', rules }),
      robot: await cluster.addServiceAccount('robot', { namespace: 'team', rules }),
    };
    for (const [name, kubeconfig] of Object.entries(users)) {
      const kubectl = (...args: readonly string[]): string =>
        execFileSync('kubectl', [`--kubeconfig=${kubeconfig}`, ...args], { encoding: 'utf8', stdio: 'pipe' });
      kubectl('create', 'configmap', name);
      expect(() => kubectl('delete', 'configmap', name)).toThrow(/cannot delete resource/);
      expect(() => kubectl('-n', 'default', 'get', 'configmaps')).toThrow(/cannot list resource/);
    }
    const done = cluster.auditLog().filter(({ user, resource }) => resource === 'configmaps' && /alice|robot/.test(user));
    expect(done.map(({ user, verb, namespace, code }) => [user, verb, namespace, code])).toEqual([
      ['alice', 'create', 'team', 201],
      ['alice', 'delete', 'team', 403],
      ['alice', 'list', 'default', 403],
      ['system:serviceaccount:team:robot', 'create', 'team', 201],
      ['system:serviceaccount:team:robot', 'delete', 'team', 403],
      ['system:serviceaccount:team:robot', 'list', 'default', 403],
    ]);
  });

  test('advertises simulated GPUs', async () => {
    await cluster.fakeGpus(1, { count: 2, labels: { 'nvidia.com/gpu.product': 'NVIDIA-L4' } });
    await cluster.apply(aPod('gpu', gpus(2)), aPod('greedy', gpus(3)));
    const [pod] = await readyPods(cluster, 'gpu', 1);
    expect(pod?.node).toBe('node1');
    await waitFor('a word about the other', async () => (await cluster.kubectl('get', 'events')).includes('Insufficient nvidia.com/gpu'));
    await cluster.kubectl('delete', 'pod', '--wait=false', 'gpu', 'greedy');
  });

  test('answers 410 to a watch from before the compaction', async () => {
    const { metadata } = await cluster.request<{ metadata: { resourceVersion: string } }>('GET', '/api/v1/namespaces/default/pods');
    await cluster.compactEtcd();
    const watch = `/api/v1/namespaces/default/pods?watch=1&timeoutSeconds=1&resourceVersion=${metadata.resourceVersion}`;
    expect(await cluster.kubectl('get', '--raw', watch).catch(String)).toMatch(/"code":410|too old resource version/);
  });

  test('survives an outage of its API server', async () => {
    const [pod] = await readyPods(cluster, 'web', 2);
    await cluster.stopApiServer();
    expect(await connecting(new URL(cluster.server).hostname, 6443)).toBe('ECONNREFUSED');
    expect(await answerOf(`http://${pod?.ip}:8080/`)).toBe(`${pod?.name}\n`);
    await cluster.startApiServer();
    expect((await cluster.pods('default')).map(({ name }) => name)).toContain(pod?.name);
    await cluster.pauseApiServer();
    try {
      const failure = await fetch(cluster.server, { signal: AbortSignal.timeout(500) }).catch((error: Error) => error.name);
      expect(failure).toBe('TimeoutError');
    } finally {
      await cluster.resumeApiServer();
    }
  });

  test('has nodes that can be paused and resumed', async () => {
    const pod = (await readyPods(cluster, 'web', 2)).find(({ node }) => node === 'node2');
    const url = `http://${pod?.ip}:8080/`;
    await cluster.pauseNode(2);
    await expect(fetch(url, { signal: AbortSignal.timeout(1000) })).rejects.toThrow(/timeout/);
    await cluster.resumeNode(2);
    expect(await answerOf(url)).toBe(`${pod?.name}\n`);
  });

  test('loses a node: silent, not ready, pods rescheduled, replaced by a new one', async () => {
    const pod = (await readyPods(cluster, 'web', 2)).find(({ node }) => node === 'node2');
    await cluster.killNode(2);
    expect(await connecting(pod?.ip ?? '', 8080)).toBe('silence');
    expect(await connecting(cluster.ownIp?.replace(/1$/, '12') ?? '', 10_250)).toBe('silence');
    await waitFor('the node to be missed', async () => !(await cluster.isNodeReady(2)));
    await readyPods(cluster, 'web', 2, (node) => node === 'node1');
    await cluster.startNode(2);
    await cluster.kubectl('scale', 'deployment', 'web', '--replicas=4');
    await readyPods(cluster, 'web', 2, (node) => node === 'node2');
  });

  test('has no routes when they are off, and never the default one', async () => {
    const [pod] = await readyPods(cluster, 'web', 2);
    const network = cluster.ownIp?.replace(/\.0\.1$/, '');
    const bridge = `svck${network?.split('.')[1]}`;
    expect(deviceFor(pod?.ip ?? '')).toBe(bridge);
    await cluster.hostRoutes(false);
    expect(deviceFor(pod?.ip ?? '')).toBe('none');
    expect(await connecting(pod?.ip ?? '', 8080)).toMatch(/EHOSTUNREACH|ENETUNREACH/);
    // Pods still reach this computer.
    expect(await cluster.kubectl('exec', pod?.name ?? '', '--', 'sh', '-c', `nc -w 2 ${cluster.ownIp} 6443 < /dev/null`)).toBe('');
    await cluster.hostRoutes(true);
    expect(await answerOf(`http://${pod?.ip}:8080/`)).toBe(`${pod?.name}\n`);
    // Unused addresses of a node, a pod, a service and a load balancer.
    for (const address of ['0.77', '16.1', '30.3', '129.7', '192.200', '255.1']) {
      expect([bridge, 'none']).toContain(deviceFor(`${network}.${address}`));
      await connecting(`${network}.${address}`, 80);
    }
    expect(await cluster.leakedPackets()).toBe(0);
  });

  test('lets no packet of a pod leave', async () => {
    await cluster.apply(aPod('out', { command: ['sleep', '1000'] }));
    await readyPods(cluster, 'out', 1);
    // From the range for documentation, where no machine answers anyway.
    await expect(cluster.kubectl('exec', 'out', '--', 'nc', '-w', '2', '198.51.100.77', '80')).rejects.toThrow(/unreachable|No route/);
  });
});

describeKubernetes('nodes', 'two clusters', () => {
  test('are isolated, and one continues when the other ends', async () => {
    await withKubernetes({ name: 'first', nodes: 1 }, async (first) => {
      const second = await startKubernetes({ name: 'second', nodes: 1, withoutBetaApis: true });
      try {
        expect(second.ownIp).not.toBe(first.ownIp);
        for (const cluster of [first, second]) await cluster.apply(aPod('web'));
        for (const cluster of [first, second]) {
          const [pod] = await readyPods(cluster, 'web', 1);
          expect(await answerOf(`http://${pod?.ip}:8080/`)).toBe('web\n');
        }
        const versions = await Promise.all([first, second].map((cluster) => cluster.kubectl('api-versions')));
        expect(versions[0]).toContain('batch/v1beta1');
        expect(versions[1]).not.toContain('batch/v1beta1');
      } finally {
        await second.release();
      }
      expectGone(second);
      const [pod] = await readyPods(first, 'web', 1);
      expect(await answerOf(`http://${pod?.ip}:8080/`)).toBe('web\n');
    });
  });
});

describeKubernetes('api', 'a cluster without nodes', () => {
  test('assigns pods to fake nodes, and is gone afterwards', async () => {
    const cluster = await startKubernetes({ name: 'api' });
    try {
      expect(cluster.server).toMatch(/^https:\/\/127\./);
      expect(await cluster.kubectl('config', 'current-context')).toBe('api\n');
      await cluster.addFakeNode('big', { cpus: 64, gpus: 8, labels: { 'cloud.google.com/gke-accelerator': 'nvidia-l4' } });
      await cluster.apply(aPod('gpu', gpus(8)));
      await waitFor('the pod to be assigned', async () => (await cluster.pods('default'))[0]?.node === 'big', {
        describe: () => cluster.kubectl('describe', 'pods,nodes'),
      });
    } finally {
      await cluster.release();
    }
    expectGone(cluster);
  });
});

describe('leftovers', () => {
  for (const [kind, nodes] of [
    ['nodes', 1],
    ['api', 0],
  ] as const) {
    describeKubernetes(kind, `of a test run that was killed (${kind})`, () => {
      test('are removed', async () => {
        const child = fork(new URL('../testbed/kubernetes/abandon.ts', import.meta.url), [String(nodes)], {
          stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
        });
        const [abandoned]: TestCluster[] = await once(child, 'message');
        if (abandoned === undefined) throw new Error('no cluster');
        expect(processesOf(abandoned.dir).length).toBeGreaterThan(3);
        const ended = once(child, 'exit');
        child.kill('SIGKILL');
        await ended;
        await waitFor('the guard', () => !existsSync(abandoned.dir));
        await waitFor('its own end', () => processesOf(abandoned.dir).length === 0);
        expectGone(abandoned);
      });
    });
  }
});
