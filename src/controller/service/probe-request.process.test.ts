import { mkdtempSync, rmSync } from 'node:fs';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { createServer as createTcpServer, type Server } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, expect, test } from 'vitest';
import type { ReadinessProbe } from '../../domain/task.ts';
import { systemClock } from '../../shared/clock.ts';
import { probeReplica } from './probe-request.ts';

const aProbe = (changes: Partial<ReadinessProbe> = {}): ReadinessProbe => ({
  path: '/ready',
  headers: {},
  postData: undefined,
  initialDelaySeconds: 1,
  timeoutSeconds: 5,
  intervalSeconds: 10,
  failureThresholdSeconds: 180,
  ...changes,
});

const servers: Server[] = [];
afterEach(() => {
  for (const server of servers.splice(0)) server.close();
});

async function listen(server: Server): Promise<number> {
  servers.push(server);
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve);
  });
  const address = server.address();
  if (typeof address !== 'object' || address === null) throw new Error('not listening');
  return address.port;
}

const probePort = (port: number, probe: ReadinessProbe) =>
  probeReplica(
    { kind: 'tcp', host: '127.0.0.1', port },
    { readinessProbe: probe, protocol: 'auto' },
    systemClock,
    new AbortController().signal,
  );

const answering = (reply: (request: IncomingMessage, response: ServerResponse) => void) => listen(createServer(reply));

test('only status 200 means ready', async () => {
  for (const status of [200, 201, 204, 301, 404, 503]) {
    const port = await answering((_request, response) => response.writeHead(status).end());
    expect(await probePort(port, aProbe())).toEqual({ passed: status === 200, detail: `/ready answered ${status}` });
  }
});

test('the probe sends its headers, and a JSON POST when there is data', async () => {
  let seen:
    | { method: string | undefined; url: string | undefined; authorization: string | undefined; type: string | undefined; body: string }
    | undefined;
  const port = await answering((request, response) => {
    const { method, url, headers } = request;
    let body = '';
    request.on('data', (chunk: Buffer) => {
      body += chunk.toString();
    });
    request.on('end', () => {
      seen = { method, url, authorization: headers.authorization, type: headers['content-type'], body };
      response.end('ok');
    });
  });
  const answer = await probePort(port, aProbe({ headers: { Authorization: 'Bearer k' }, postData: '{"a":1}' }));
  expect(answer.passed).toBe(true);
  expect(seen).toEqual({ method: 'POST', url: '/ready', authorization: 'Bearer k', type: 'application/json', body: '{"a":1}' });
});

test('a refused connection, an early close and silence fail without an exception', async () => {
  const closing = await listen(createTcpServer((socket) => socket.destroy()));
  const silent = await listen(createTcpServer(() => undefined));
  const free = await answering(() => undefined);
  servers.pop()?.close();
  expect((await probePort(closing, aProbe())).passed).toBe(false);
  expect(await probePort(silent, aProbe({ timeoutSeconds: 0.05 }))).toEqual({
    passed: false,
    detail: '/ready did not answer within 0.05 s',
    isUnanswered: true,
  });
  expect(await probePort(free, aProbe())).toEqual({
    passed: false,
    detail: `nothing listens on port ${free} yet (the program must listen on 0.0.0.0, not on 127.0.0.1 alone)`,
    isClosed: true,
  });
});

test('a broken tunnel says nothing about the program and reveals no local socket path', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'svc-t-'));
  const path = join(folder, 'way');
  const probe = (kind: 'unix' | 'forward') =>
    probeReplica({ kind, path, port: 8080 }, { readinessProbe: aProbe(), protocol: 'auto' }, systemClock, new AbortController().signal);
  const cut = { passed: false, detail: "/ready could not be asked: there is no connection to the replica's machine" };
  expect(await probe('unix')).toEqual(cut);
  expect(await probe('forward')).toEqual(cut);
  let answer = '';
  const tunnel = createTcpServer((socket) => void socket.on('error', () => undefined).end(answer));
  servers.push(tunnel);
  await new Promise<void>((resolve) => {
    tunnel.listen(path, resolve);
  });
  expect(await probe('unix')).toEqual(cut);
  answer = 'ERR ECONNREFUSED\n';
  expect((await probe('unix')).detail).toContain('nothing listens on port 8080 yet');
  rmSync(folder, { recursive: true });
});

test('an answer with an endless body is ready', async () => {
  const port = await answering((_request, response) => response.writeHead(200).write('more to come'));
  expect((await probePort(port, aProbe())).passed).toBe(true);
});
