import { lookup } from 'node:dns/promises';
import { once } from 'node:events';
import { createServer as createHttpServer, request, type IncomingMessage } from 'node:http';
import { connect, createServer, type AddressInfo, type Server, type Socket } from 'node:net';
import { join } from 'node:path';
import { buffer, text } from 'node:stream/consumers';
import { promisify } from 'node:util';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { freePort } from '../../test/support/free-port.ts';
import { makeTempHome } from '../../test/support/temp-home.ts';
import { waitFor } from '../../test/support/wait-for.ts';
import { rmSync } from 'node:fs';
import { createEgress, isForbiddenAddress, type ResolvedAddress } from './egress.ts';

const servers: Server[] = [];
let home = '';
let socketPath = '';

async function listen(server: Server, where: string | number): Promise<number> {
  servers.push(server);
  if (typeof where === 'string') server.listen(where);
  else server.listen(where, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  return typeof address === 'object' && address !== null ? (address satisfies AddressInfo).port : 0;
}

/** A resolver that knows one name. */
function resolveNamed(host: string): Promise<readonly ResolvedAddress[]> {
  if (host !== 'named.example') return Promise.reject(new Error(`no such host: ${host}`));
  return Promise.resolve([{ address: '127.0.0.1', family: 4 }]);
}

function resolveToLoopback(): Promise<readonly ResolvedAddress[]> {
  return Promise.resolve([{ address: '127.0.0.1', family: 4 }]);
}

/** Starts the proxy with other forbidden addresses, because a test may only connect to loopback. */
async function startPermissive(): Promise<void> {
  await listen(createEgress({ resolve: resolveNamed, isForbidden: () => false }), socketPath);
}

async function tunnel(authority: string): Promise<{ readonly head: string; readonly socket: Socket }> {
  const socket = connect(socketPath);
  socket.write(`CONNECT ${authority} HTTP/1.1\r\nhost: ${authority}\r\n\r\n`);
  let head = '';
  while (!head.includes('\r\n\r\n')) {
    const [chunk] = await once(socket, 'data');
    head += String(chunk);
  }
  socket.pause();
  return { head, socket };
}

async function get(
  url: string,
  headers: Readonly<Record<string, string>> = {},
): Promise<{ readonly answer: IncomingMessage; readonly body: string }> {
  const asked = request({ socketPath, path: url, headers: { host: new URL(url).host, ...headers }, agent: false }).end();
  const [answer] = await once(asked, 'response');
  return { answer, body: await text(answer) };
}

beforeEach(() => {
  home = makeTempHome();
  socketPath = join(home, 'out');
});

afterEach(() => {
  for (const server of servers.splice(0)) server.close();
  rmSync(home, { recursive: true, force: true });
});

const withMetadataName = async (host: string): Promise<readonly ResolvedAddress[]> =>
  host === 'metadata.example' ? [{ address: '100.100.100.200', family: 4 }] : lookup(host, { all: true });

test.for([
  '[::ffff:169.254.169.254]:80',
  '[fd00:ec2::254]:80',
  '2852039166:80',
  '0xa9fea9fe:80',
  '0251.0376.0251.0376:80',
  '169.254.43518:80',
  'metadata.example:80',
])('a tunnel to the metadata address %s is refused', async (authority) => {
  await listen(createEgress({ resolve: withMetadataName, isForbidden: isForbiddenAddress }), socketPath);
  const { head, socket } = await tunnel(authority);
  socket.destroy();
  expect(head).toMatch(/^HTTP\/1\.1 403 /);
});

test('a CONNECT tunnel carries both directions, and each side ends on its own', async () => {
  await startPermissive();
  const port = await listen(
    createServer({ allowHalfOpen: true }, (socket) => socket.pipe(socket)),
    0,
  );
  const { head, socket } = await tunnel(`named.example:${port}`);
  expect(head).toMatch(/^HTTP\/1\.1 200 /);
  const sent = Buffer.alloc(1_000_000, 'x');
  socket.end(sent);
  expect((await buffer(socket)).equals(sent)).toBe(true);
});

test('a plain request is forwarded without its hop-by-hop headers', async () => {
  await startPermissive();
  let seen: IncomingMessage['headers'] = {};
  const upstream = createHttpServer((asked, reply) => {
    seen = asked.headers;
    reply.writeHead(201, { 'x-from': 'upstream', connection: 'x-gone', 'x-gone': '1' }).end(`answer to ${asked.method} ${asked.url}`);
  });
  const port = await listen(upstream, 0);
  const { answer, body } = await get(`http://127.0.0.1:${port}/path?q=1`, { 'x-kept': 'yes', 'proxy-authorization': 'secret' });
  expect([answer.statusCode, answer.headers['x-from'], answer.headers['x-gone'], body]).toEqual([
    201,
    'upstream',
    undefined,
    'answer to GET /path?q=1',
  ]);
  expect([seen['x-kept'], seen['proxy-authorization'], seen.host]).toEqual(['yes', undefined, `127.0.0.1:${port}`]);
});

test.for(['127.0.0.1', 'localhost', '[::1]', '169.254.169.254', '[::ffff:127.0.0.1]'])('%s is rejected with the reason', async (host) => {
  await listen(createEgress({ resolve: resolveToLoopback, isForbidden: isForbiddenAddress }), socketPath);
  const { head } = await tunnel(`${host}:80`);
  expect(head).toMatch(/^HTTP\/1\.1 403 /);
  const { answer, body } = await get(`http://${host}/`);
  expect([answer.statusCode, body]).toEqual([403, expect.stringContaining('loopback, link-local or a cloud')]);
});

test('unreachable hosts and requests that need no proxy are reported', async () => {
  await startPermissive();
  expect((await tunnel(`127.0.0.1:${await freePort()}`)).head).toMatch(/^HTTP\/1\.1 502 /);
  expect((await tunnel('unknown.example:443')).head).toMatch(/^HTTP\/1\.1 502 /);
  expect((await tunnel('no-port')).head).toMatch(/^HTTP\/1\.1 403 /);
  const asked = request({ socketPath, path: '/relative', agent: false }).end();
  const [answer] = await once(asked, 'response');
  expect([answer.statusCode, await text(answer)]).toEqual([403, 'svc: This is a proxy: ask for http://HOST/PATH.\n']);
});

test('no connection is opened for a client that disconnected during the lookup', async () => {
  const lookedUp = Promise.withResolvers<void>();
  const found = Promise.withResolvers<readonly ResolvedAddress[]>();
  const resolve = (host: string): Promise<readonly ResolvedAddress[]> => {
    if (host !== 'slow.example') return resolveNamed(host);
    lookedUp.resolve();
    return found.promise;
  };
  const egress = createEgress({ resolve, isForbidden: () => false });
  await listen(egress, socketPath);
  let connections = 0;
  const upstream = createHttpServer((_asked, reply) => void reply.end()).on('connection', () => (connections += 1));
  const port = await listen(upstream, 0);
  const client = connect(socketPath);
  client.write(`POST http://slow.example:${port}/left HTTP/1.1\r\nhost: slow.example\r\ncontent-length: 5\r\n\r\n`);
  await lookedUp.promise;
  client.destroy();
  await waitFor('the proxy to see the disconnect', () => promisify(egress.getConnections.bind(egress))().then((count) => count === 0));
  found.resolve([{ address: '127.0.0.1', family: 4 }]);
  await get(`http://named.example:${port}/later`);
  expect(connections).toBe(1);
});

test("an upstream that disconnects halfway ends the client's connection", async () => {
  await startPermissive();
  const port = await listen(
    createServer((socket) => void socket.once('data', () => socket.write('part', () => socket.destroy()))),
    0,
  );
  const { socket } = await tunnel(`127.0.0.1:${port}`);
  socket.write('go');
  expect(await text(socket)).toBe('part');
});
