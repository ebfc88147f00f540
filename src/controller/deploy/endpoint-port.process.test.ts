import { once } from 'node:events';
import { readLoadBalancer } from '../../domain/load-balancer.ts';
import { createServer, type Server } from 'node:net';
import { afterEach, expect, test } from 'vitest';
import {
  checkSidePort,
  sidePortsOf,
  chooseEndpointPort,
  claimedPort,
  firstEndpointPort,
  firstPortOf,
  isPortFree,
  lastEndpointPort,
  type KnownPorts,
} from './endpoint-port.ts';
import { freePort } from '../../../test/support/free-port.ts';

const servers: Server[] = [];
afterEach(() => {
  for (const server of servers.splice(0)) server.close();
});

const known = (taken: Iterable<number> = [], first = firstEndpointPort): KnownPorts => ({
  taken: new Set(taken),
  others: new Map(),
  first,
});

/** A port with a listener. The system assigns it to no other process once the test has closed the listener. */
async function busyPort(): Promise<number> {
  const port = await freePort();
  const server = createServer().listen(port, '127.0.0.1');
  servers.push(server);
  await once(server, 'listening');
  return port;
}

test('a busy port is distinguished from a free one', async () => {
  const port = await busyPort();
  expect(await isPortFree('127.0.0.1', port)).toBe(false);
  servers.pop()?.close();
  expect(await isPortFree('127.0.0.1', port)).toBe(true);
});

test('without a request, the first free port without a service is chosen', async () => {
  // Two ports that other programs of this machine do not use: services that start and end meanwhile use the first ones.
  const [one, two] = [lastEndpointPort - 2 * (process.pid % 500) - 1, lastEndpointPort - 2 * (process.pid % 500)];
  const others = Array.from({ length: lastEndpointPort - firstEndpointPort + 1 }, (_, index) => firstEndpointPort + index);
  const taken = new Set(others.filter((port) => port !== one && port !== two));
  expect(await chooseEndpointPort('127.0.0.1', undefined, known(taken))).toBe(one);
  expect(await chooseEndpointPort('127.0.0.1', undefined, known([...taken, one]))).toBe(two);
  const server = createServer().listen(one, '127.0.0.1');
  servers.push(server);
  await once(server, 'listening');
  expect(await chooseEndpointPort('127.0.0.1', undefined, known(taken))).toBe(two);
});

test('a requested port that is busy or belongs to another service is refused', async () => {
  const port = await busyPort();
  await expect(chooseEndpointPort('127.0.0.1', port, known())).rejects.toMatchObject({
    code: 'SVC_PORT_BUSY',
    message: expect.stringContaining(String(port)),
  });
  await expect(chooseEndpointPort('127.0.0.1', 1, known([1]))).rejects.toMatchObject({ code: 'SVC_PORT_BUSY' });
});

test('a metrics port that is busy or an endpoint is refused with a hint', async () => {
  const port = await busyPort();
  await expect(checkSidePort({ field: 'metrics_port', host: '127.0.0.1', port }, new Set())).rejects.toMatchObject({
    code: 'SVC_PORT_BUSY',
    message: expect.stringContaining(String(port)),
    hint: expect.stringContaining('metrics_port'),
  });
  servers.pop()?.close();
  await expect(checkSidePort({ field: 'metrics_port', host: '127.0.0.1', port }, new Set([port]))).rejects.toMatchObject({
    code: 'SVC_PORT_BUSY',
  });
  expect(await checkSidePort({ field: 'metrics_port', host: '127.0.0.1', port }, new Set())).toBeUndefined();
});

test('ports beside the endpoint come from the file', () => {
  const none = readLoadBalancer({});
  expect(sidePortsOf('0.0.0.0', none)).toEqual([]);
  expect(sidePortsOf('0.0.0.0', { ...none, metricsPort: 1, httpRedirectPort: 2 })).toEqual([
    { field: 'metrics_port', host: '127.0.0.1', port: 1 },
    { field: 'http_redirect_port', host: '0.0.0.0', port: 2 },
  ]);
});

test('a port of another home is skipped, and refused with its owner when requested', async () => {
  const [one, two] = [lastEndpointPort - 2 * (process.pid % 500) - 1, lastEndpointPort - 2 * (process.pid % 500)];
  const uid = process.getuid?.() ?? 0;
  const claim = {
    port: one,
    uid,
    home: '/home/ann/a home',
    service: 'chat',
    key: 'c1',
    confirmedAt: 0,
    path: `/var/tmp/svc-ports/${one}.${uid}`,
  };
  const ports = { taken: new Set<number>(), others: new Map([[one, claim]]), first: one };
  expect(await chooseEndpointPort('127.0.0.1', undefined, ports)).toBeGreaterThanOrEqual(two);
  await expect(chooseEndpointPort('127.0.0.1', one, ports)).rejects.toMatchObject({
    code: 'SVC_PORT_BUSY',
    message: `Port ${one} belongs to service 'chat' of the home /home/ann/a home (user ${uid}).`,
    hint: expect.stringContaining("SVC_HOME='/home/ann/a home' svc serve down chat"),
  });
  // Another user's content must not run with this user's rights.
  const { hint } = claimedPort(one, { ...claim, uid: uid + 1 });
  expect(hint).toContain(`that user or root can remove ${claim.path}`);
  expect(hint).not.toContain('SVC_HOME');
});

test('after the last port, the search continues at the first one', async () => {
  const taken = Array.from({ length: 100 }, (_, index) => lastEndpointPort - index);
  const port = await chooseEndpointPort('127.0.0.1', undefined, known(taken, lastEndpointPort - 50));
  expect(port).toBeLessThan(lastEndpointPort - 99);
});

test('homes start at different ports of the range', () => {
  const firsts = Array.from({ length: 50 }, (_, index) => firstPortOf(`/home/${index}/.svc`));
  expect(new Set(firsts).size).toBeGreaterThan(45);
  expect(Math.min(...firsts)).toBeGreaterThanOrEqual(firstEndpointPort);
  expect(Math.max(...firsts)).toBeLessThanOrEqual(lastEndpointPort);
});
