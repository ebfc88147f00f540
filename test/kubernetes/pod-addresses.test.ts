import { once } from 'node:events';
import { existsSync, rmSync, statSync } from 'node:fs';
import { createServer } from 'node:net';
import { request } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { KubernetesRemote } from '../../src/remote/kubernetes/index.ts';
import type { HomePaths } from '../../src/shared/paths.ts';
import type { ReplicaAddress } from '../../src/shared/replica-address.ts';
import { openTestKubeApi } from '../support/kubernetes-provider.ts';
import { describeKubernetes, startKubernetes, type TestCluster } from '../support/kubernetes.ts';
import { processesOf } from '../support/leaks.ts';
import { waitFor } from '../support/wait-for.ts';
import { aHome, openPod, startPod } from './pod-remotes.ts';

const port = 8080;

/** A server that answers with the pod's name; `/echo` returns the request body. */
const server = `const http = require('http');
http.createServer((q, r) => q.url === '/echo' ? q.pipe(r) : r.end(require('os').hostname())).listen(${port}, process.argv[1]);`;

/** Starts the program's listener. */
async function serve(remote: KubernetesRemote, host = '::'): Promise<void> {
  await remote.exec(['node', '-e', server, host], { detached: true });
  const tables = ['sh', '-c', 'cat /proc/net/tcp /proc/net/tcp6'];
  await waitFor('the program to listen', async () => (await remote.exec(tables)).stdout.includes(':1F90 0'));
}

interface Reply {
  readonly status: number;
  readonly body: string;
}

/** Sends a request as the balancer does: over a new connection. */
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

describeKubernetes('nodes', "addresses of a pod's port", () => {
  let cluster: TestCluster;
  beforeAll(async () => (cluster = await startKubernetes({ nodes: 1 })));
  afterAll(() => cluster.release());

  test("port-forward before the program listens, then the pod's own address", async () => {
    const name = await startPod(cluster);
    const remote = openPod(cluster, name, { paths: aHome(cluster) });
    const first = await remote.address(port);
    expect(first).toMatchObject({ kind: 'forward', by: 'port-forward' });
    await expect(ask(first)).rejects.toThrow(/socket hang up|ECONNRESET/);
    await serve(remote);
    const settled = await remote.address(port);
    expect(settled).toMatchObject({ kind: 'tcp', port, by: 'pod address' });
    for (const address of [first, settled]) expect(await ask(address)).toEqual({ status: 200, body: name });
  });

  test("a program that listens on the pod's loopback uses a port-forward", async () => {
    const name = await startPod(cluster);
    const remote = openPod(cluster, name, { paths: aHome(cluster) });
    await serve(remote, '127.0.0.1');
    const address = await remote.address(port);
    expect(address).toMatchObject({ kind: 'forward', by: 'port-forward' });
    expect(await ask(address)).toEqual({ status: 200, body: name });
  });

  test('without a pod route the NodePort is used, removed with the pod', async () => {
    const name = await startPod(cluster);
    const remote = openPod(cluster, name, { paths: aHome(cluster) });
    await serve(remote);
    const { podIP } = (await openTestKubeApi(cluster).get<never>(`/api/v1/namespaces/default/pods/${name}`))?.['status'] ?? { podIP: '' };
    const api = openTestKubeApi(cluster);
    // The test replaces the pod's address by this computer's, where another program listens on the same port.
    const other = createServer((socket) => socket.end()).listen(port, cluster.ownIp);
    await once(other, 'listening');
    try {
      api.get = async (...args) => {
        const found = await openTestKubeApi(cluster).get(...args);
        return found === undefined ? undefined : JSON.parse(JSON.stringify(found).replaceAll(`"${podIP}"`, `"${cluster.ownIp}"`));
      };
      const address = await openPod(cluster, name, { paths: aHome(cluster), api }).address(port);
      expect(address).toMatchObject({ kind: 'tcp', by: 'node port' });
      expect(await ask(address)).toEqual({ status: 200, body: name });
    } finally {
      other.close();
    }
    const services = (): Promise<string> => cluster.kubectl('get', 'services', '-l', `svc-key=${name}`, '-o', 'name');
    expect(await services()).toContain(`${name}-p8080`);
    await cluster.kubectl('delete', 'pod', name);
    await waitFor('the service to go with its pod', async () => (await services()) === '');
  });

  test('without any route it uses a port-forward, and no packet leaves', async () => {
    const name = await startPod(cluster);
    const remote = openPod(cluster, name, { paths: aHome(cluster) });
    await serve(remote);
    await cluster.hostRoutes(false);
    try {
      const address = await remote.address(port);
      // The nodes' own network may still be directly connected.
      expect(address.by).toMatch(/^port-forward$|^node port$/);
      expect(await ask(address)).toEqual({ status: 200, body: name });
    } finally {
      await cluster.hostRoutes(true);
    }
    expect(await cluster.leakedPackets()).toBe(0);
  });

  test('the configured kind of address is used: NodePort or load balancer', async () => {
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
    const host = await cluster.assignLoadBalancer('default', service);
    expect(await balanced).toEqual({ kind: 'tcp', host, port, by: 'load balancer' });
  });

  test('a NodePort still reaches the pod while the node is silent', async () => {
    const name = await startPod(cluster);
    const remote = openPod(cluster, name, { paths: aHome(cluster), reach: 'node-port' });
    await serve(remote);
    const address = await remote.address(port);
    await cluster.pauseKubelet(1);
    try {
      const isReady = async (): Promise<boolean> => (await cluster.pods()).some((pod) => pod.name === name && pod.isReady);
      await waitFor('the pod to be called not ready', async () => !(await isReady()));
      // Time for the nodes to apply it.
      await sleep(5_000);
      expect(await ask(address)).toEqual({ status: 200, body: name });
    } finally {
      await cluster.resumeKubelet(1);
      await cluster.nodeReady(1);
    }
  });

  test('the forwarder outlives its process, restarts when killed, ends when unused', async () => {
    const name = await startPod(cluster);
    const paths = aHome(cluster);
    const remote = openPod(cluster, name, { paths, reach: 'port-forward' });
    await serve(remote);
    const address = await remote.address(port);
    if (address.kind !== 'forward') throw new Error('not forwarded');
    expect(statSync(address.path).mode & 0o777).toBe(0o600);
    const [first] = forwarders(paths);
    if (first === undefined) throw new Error('no forwarder');
    process.kill(first, 'SIGKILL');
    // The next user of the pod restarts the forwarder.
    await waitFor(
      'another forwarder',
      async () => forwarders(paths).some((pid) => pid !== first) && (await ask(address).catch(() => false)) !== false,
    );
    expect(await ask(address)).toEqual({ status: 200, body: name });
    // A removed socket file is restored by the next lookup.
    rmSync(address.path);
    expect(await remote.address(port)).toEqual(address);
    const large = 'x'.repeat(8_000_000);
    expect((await ask(address, '/echo', large)).body).toBe(large);
    await remote.close();
    await waitFor('the forwarder to end', () => forwarders(paths).length === 0);
    expect(existsSync(address.path)).toBe(false);
  });

  test('a socket in the pod is reachable from this computer', async () => {
    const remote = openPod(cluster, await startPod(cluster), { paths: aHome(cluster) });
    const socket = `${remote.baseDir}/some.sock`;
    const path = await remote.forwardSocket(socket);
    const script = `require('http').createServer((q, r) => q.pipe(r)).listen(process.argv[1])`;
    await remote.exec(['node', '-e', script, socket], { detached: true });
    await waitFor('the socket', async () => (await remote.exec(['test', '-S', socket])).exitCode === 0);
    const large = 'y'.repeat(8_000_000);
    expect((await ask({ kind: 'forward', path, port: 0 }, '/', large)).body).toBe(large);
    expect(await remote.forwardSocket(socket)).toBe(path);
  });
});
