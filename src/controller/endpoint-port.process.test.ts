import { once } from 'node:events';
import { createServer, type Server } from 'node:net';
import { afterEach, expect, test } from 'vitest';
import { checkMetricsPort, chooseEndpointPort, firstEndpointPort, isPortFree, lastEndpointPort } from './endpoint-port.ts';

const servers: Server[] = [];
afterEach(() => {
  for (const server of servers.splice(0)) server.close();
});

async function busyPort(): Promise<number> {
  const server = createServer();
  servers.push(server);
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve);
  });
  const address = server.address();
  return typeof address === 'object' && address !== null ? address.port : 0;
}

test('tells a busy port from a free one', async () => {
  const port = await busyPort();
  expect(await isPortFree('127.0.0.1', port)).toBe(false);
  servers.pop()?.close();
  expect(await isPortFree('127.0.0.1', port)).toBe(true);
});

test('takes the first free port that no other service has', async () => {
  // Two that other programs of this machine leave alone: services, which may come and go meanwhile, have the first ones.
  const [one, two] = [lastEndpointPort - 2 * (process.pid % 500) - 1, lastEndpointPort - 2 * (process.pid % 500)];
  const others = Array.from({ length: lastEndpointPort - firstEndpointPort + 1 }, (_, index) => firstEndpointPort + index);
  const taken = new Set(others.filter((port) => port !== one && port !== two));
  expect(await chooseEndpointPort('127.0.0.1', undefined, taken)).toBe(one);
  expect(await chooseEndpointPort('127.0.0.1', undefined, new Set([...taken, one]))).toBe(two);
  const server = createServer().listen(one, '127.0.0.1');
  servers.push(server);
  await once(server, 'listening');
  expect(await chooseEndpointPort('127.0.0.1', undefined, taken)).toBe(two);
});

test('a wished port that is busy, or the endpoint of another service, is refused with its number', async () => {
  const port = await busyPort();
  await expect(chooseEndpointPort('127.0.0.1', port, new Set())).rejects.toMatchObject({
    code: 'SVC_PORT_BUSY',
    message: expect.stringContaining(String(port)),
  });
  await expect(chooseEndpointPort('127.0.0.1', 1, new Set([1]))).rejects.toMatchObject({ code: 'SVC_PORT_BUSY' });
});

test('a port for metrics that is busy, or an endpoint, is refused with its number and what to do', async () => {
  const port = await busyPort();
  await expect(checkMetricsPort(port, new Set())).rejects.toMatchObject({
    code: 'SVC_PORT_BUSY',
    message: expect.stringContaining(String(port)),
    hint: expect.stringContaining('metrics_port'),
  });
  servers.pop()?.close();
  await expect(checkMetricsPort(port, new Set([port]))).rejects.toMatchObject({ code: 'SVC_PORT_BUSY' });
  expect(await checkMetricsPort(port, new Set())).toBeUndefined();
});
