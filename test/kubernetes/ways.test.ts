import { once } from 'node:events';
import { existsSync, rmSync, statSync } from 'node:fs';
import { createServer } from 'node:net';
import { request } from 'node:http';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { KubernetesRemote } from '../../src/remote/kubernetes/index.ts';
import type { HomePaths } from '../../src/shared/paths.ts';
import type { ReplicaAddress } from '../../src/shared/replica-address.ts';
import { openClusterApi } from '../support/kubernetes-place.ts';
import { describeKubernetes, startKubernetes, type TestCluster } from '../support/kubernetes.ts';
import { processesOf } from '../support/leaks.ts';
import { waitFor } from '../support/wait-for.ts';
import { aHome, openPod, startPod } from './pod-remotes.ts';

const port = 8080;

/** Says the pod's name, whatever is asked; `/echo` gives back what it gets. */
const server = `const http = require('http');
http.createServer((q, r) => q.url === '/echo' ? q.pipe(r) : r.end(require('os').hostname())).listen(${port}, process.argv[1]);`;

/** Lets the program listen. */
async function serve(remote: KubernetesRemote, host = '::'): Promise<void> {
  await remote.exec(['node', '-e', server, host], { detached: true });
  const tables = ['sh', '-c', 'cat /proc/net/tcp /proc/net/tcp6'];
  await waitFor('the program to listen', async () => (await remote.exec(tables)).stdout.includes(':1F90 0'), { timeoutMs: 30_000 });
}

interface Reply {
  readonly status: number;
  readonly body: string;
}

/** Asks as the balancer does: over a connection of its own. */
function ask(address: ReplicaAddress, path = '/', body = ''): Promise<Reply> {
  return new Promise((resolve, reject) => {
    const to = address.kind === 'tcp' ? { host: address.host, port: address.port } : { socketPath: address.path };
    const sent = request({ ...to, path, method: body === '' ? 'GET' : 'POST', agent: false }, (response) => {
      const parts: Buffer[] = [];
      response.on('data', (chunk: Buffer) => parts.push(chunk));
      response.on('end', () => resolve({ status: response.statusCode ?? 0, body: Buffer.concat(parts).toString('utf8') }));
      response.on('error', reject);
    });
    sent.on('error', reject);
    sent.end(body);
  });
}

const forwarders = (paths: HomePaths): readonly number[] =>
  processesOf(paths.home)
    .filter(({ command }) => command.includes('kubernetes/forwarder'))
    .map(({ pid }) => pid);

describeKubernetes('nodes', 'ways to the port of a pod', () => {
  let cluster: TestCluster;
  beforeAll(async () => (cluster = await startKubernetes({ nodes: 1 })));
  afterAll(() => cluster.release());

  test('before the program listens it is forwarded; then the pod is reached at its own address', async () => {
    const name = await startPod(cluster);
    const remote = openPod(cluster, name, { paths: aHome(cluster) });
    const first = await remote.address(port);
    expect(first).toMatchObject({ kind: 'forward', by: 'port-forward' });
    await expect(ask(first)).rejects.toThrow(/socket hang up|ECONNRESET/);
    await serve(remote);
    const settled = await remote.address(port);
    expect(settled).toMatchObject({ kind: 'tcp', port, by: 'pod address' });
    for (const way of [first, settled]) expect(await ask(way)).toEqual({ status: 200, body: name });
  });

  test('a program that only its own pod reaches is forwarded', async () => {
    const name = await startPod(cluster);
    const remote = openPod(cluster, name, { paths: aHome(cluster) });
    await serve(remote, '127.0.0.1');
    const way = await remote.address(port);
    expect(way).toMatchObject({ kind: 'forward', by: 'port-forward' });
    expect(await ask(way)).toEqual({ status: 200, body: name });
  });

  test('without a route to pods the port of a node is taken, which goes with the pod', async () => {
    const name = await startPod(cluster);
    const remote = openPod(cluster, name, { paths: aHome(cluster) });
    await serve(remote);
    const { podIP } = (await openClusterApi(cluster).get<never>(`/api/v1/namespaces/default/pods/${name}`))?.['status'] ?? { podIP: '' };
    const api = { ...openClusterApi(cluster) };
    // The pod's address is another host's here: this computer's own, where somebody listens on that very port.
    const other = createServer((socket) => socket.end()).listen(port, cluster.ownIp);
    await once(other, 'listening');
    try {
      api.get = async (...args) => {
        const found = await openClusterApi(cluster).get(...args);
        return found === undefined ? undefined : JSON.parse(JSON.stringify(found).replaceAll(`"${podIP}"`, `"${cluster.ownIp}"`));
      };
      const way = await openPod(cluster, name, { paths: aHome(cluster), api }).address(port);
      expect(way).toMatchObject({ kind: 'tcp', by: 'node port' });
      expect(await ask(way)).toEqual({ status: 200, body: name });
    } finally {
      other.close();
    }
    const services = (): Promise<string> => cluster.kubectl('get', 'services', '-l', `svc-key=${name}`, '-o', 'name');
    expect(await services()).toContain(`${name}-p8080`);
    await cluster.kubectl('delete', 'pod', name);
    await waitFor('the service to go with its pod', async () => (await services()) === '', { timeoutMs: 60_000 });
  });

  test('without any route to the cluster it is forwarded, and no packet leaves this computer', async () => {
    const name = await startPod(cluster);
    const remote = openPod(cluster, name, { paths: aHome(cluster) });
    await serve(remote);
    await cluster.hostRoutes(false);
    try {
      const way = await remote.address(port);
      // The nodes' own network may be near still.
      expect(way.by).toMatch(/^port-forward$|^node port$/);
      expect(await ask(way)).toEqual({ status: 200, body: name });
    } finally {
      await cluster.hostRoutes(true);
    }
    expect(await cluster.leakedPackets()).toBe(0);
  });

  test('what is configured is done: a port of a node, a load balancer', async () => {
    const name = await startPod(cluster);
    const paths = aHome(cluster);
    const node = openPod(cluster, name, { paths, reach: 'node-port' });
    await serve(node);
    expect(await node.address(port)).toMatchObject({ kind: 'tcp', by: 'node port' });
    const balanced = openPod(cluster, name, { paths, reach: 'load-balancer' }).address(port);
    const service = `${name}-p8080`;
    await waitFor(
      'the service to be one with a load balancer',
      async () => (await cluster.kubectl('get', 'service', service, '-o', 'jsonpath={.spec.type}')) === 'LoadBalancer',
    );
    const host = await cluster.giveLoadBalancer('default', service);
    expect(await balanced).toEqual({ kind: 'tcp', host, port, by: 'load balancer' });
  });

  test('the forwarder outlives who started it, is started again when it is killed, and goes when nothing needs it', async () => {
    const name = await startPod(cluster);
    const paths = aHome(cluster);
    const remote = openPod(cluster, name, { paths, reach: 'port-forward' });
    await serve(remote);
    const way = await remote.address(port);
    if (way.kind !== 'forward') throw new Error('not forwarded');
    expect(statSync(way.path).mode & 0o777).toBe(0o600);
    const [first] = forwarders(paths);
    if (first === undefined) throw new Error('no forwarder');
    process.kill(first, 'SIGKILL');
    // Whoever works on the pod notices.
    await waitFor(
      'another forwarder',
      async () => forwarders(paths).some((pid) => pid !== first) && (await ask(way).catch(() => false)) !== false,
      {
        timeoutMs: 60_000,
      },
    );
    expect(await ask(way)).toEqual({ status: 200, body: name });
    // A file that somebody removed comes back with the next question.
    rmSync(way.path);
    expect(await remote.address(port)).toEqual(way);
    const large = 'x'.repeat(8_000_000);
    expect((await ask(way, '/echo', large)).body).toBe(large);
    await remote.close();
    await waitFor('the forwarder to end', () => forwarders(paths).length === 0, { timeoutMs: 30_000 });
    expect(existsSync(way.path)).toBe(false);
  });

  test('a socket in the pod is reached from here', async () => {
    const remote = openPod(cluster, await startPod(cluster), { paths: aHome(cluster) });
    const socket = `${remote.baseDir}/some.sock`;
    const path = await remote.forwardSocket(socket);
    const script = `require('http').createServer((q, r) => q.pipe(r)).listen(process.argv[1])`;
    await remote.exec(['node', '-e', script, socket], { detached: true });
    await waitFor('the socket', async () => (await remote.exec(['test', '-S', socket])).exitCode === 0, { timeoutMs: 30_000 });
    const large = 'y'.repeat(1_000_000);
    expect((await ask({ kind: 'forward', path, port: 0 }, '/', large)).body).toBe(large);
    expect(await remote.forwardSocket(socket)).toBe(path);
  });
});
