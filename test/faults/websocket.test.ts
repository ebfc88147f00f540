import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type IncomingMessage } from 'node:http';
import { connect, type AddressInfo } from 'node:net';
import { expect, test } from 'vitest';
import { WebSocket, WebSocketServer, type ClientOptions, type ServerOptions } from 'ws';
import { aBalancerReplica, withBalancer, type RunningBalancer } from '../support/balancer.ts';
import { printFigures } from '../support/figures.ts';
import { waitFor } from '../support/wait-for.ts';
import { countsAtZero } from './support.ts';

/** Observations and actions of a test on the replica's side. */
interface EchoReplica {
  readonly port: number;
  readonly server: WebSocketServer;
  /** Codes and reasons of close frames from clients. */
  readonly closed: string[];
}

/** Runs `use` with a balancer before a replica that echoes every message, and obeys `close:CODE:REASON` and `die`. */
async function withEcho(
  use: (balancer: RunningBalancer, replica: EchoReplica) => Promise<void>,
  options: ServerOptions = {},
): Promise<void> {
  const http = createServer();
  const server = new WebSocketServer({ server: http, maxPayload: 16_777_216, ...options });
  const closed: string[] = [];
  server.on('connection', (socket, request: IncomingMessage) => {
    socket.on('error', () => undefined);
    socket.on('message', (data: Buffer, isBinary) => {
      const text = isBinary ? '' : data.toString();
      const [, code = '', reason = ''] = /^close:(\d+):(.*)$/.exec(text) ?? [];
      if (code !== '') socket.close(Number(code), reason);
      else if (text === 'die') request.socket.resetAndDestroy();
      else socket.send(data, { binary: isBinary });
    });
    socket.on('close', (code, reason) => closed.push(`${code} ${String(reason)}`));
  });
  http.listen(0, '127.0.0.1');
  await once(http, 'listening');
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- a server that listens on TCP has such an address
  const { port } = http.address() as AddressInfo;
  try {
    await withBalancer([aBalancerReplica(port)], (balancer) => use(balancer, { port, server, closed }));
  } finally {
    for (const socket of server.clients) socket.terminate();
    server.close();
    http.closeAllConnections();
    http.close();
  }
}

async function opened(balancer: RunningBalancer, protocols: string[] = [], options: ClientOptions = {}): Promise<WebSocket> {
  const socket = new WebSocket(balancer.url.replace('http', 'ws'), protocols, options);
  socket.on('error', () => undefined);
  await once(socket, 'open');
  return socket;
}

/** Sends a message and returns the next one received. */
async function echoed(socket: WebSocket, message: string | Buffer): Promise<{ readonly data: Buffer; readonly isBinary: boolean }> {
  const reply = new Promise<{ readonly data: Buffer; readonly isBinary: boolean }>((resolve) => {
    socket.once('message', (data: Buffer, isBinary) => resolve({ data, isBinary }));
  });
  socket.send(message);
  return reply;
}

const closing = (socket: WebSocket): Promise<string> =>
  new Promise((resolve) => {
    socket.once('close', (code, reason) => resolve(`${code} ${String(reason)}`));
  });

const isRefused = (port: number): Promise<boolean> =>
  new Promise((resolve) => {
    const probe = connect({ host: '127.0.0.1', port }, () => {
      probe.destroy();
      resolve(false);
    });
    probe.once('error', () => resolve(true));
  });

const digest = (data: Buffer): string => createHash('sha256').update(data).digest('hex');

test.each([false, true])('text and binary of all sizes are echoed unchanged (compressed: %s)', async (perMessageDeflate) => {
  await withEcho(
    async (balancer) => {
      const socket = await opened(balancer, [], { perMessageDeflate });
      expect(socket.extensions).toBe(perMessageDeflate ? 'permessage-deflate' : '');
      for (const length of [0, 1, 125, 126, 65_535, 65_536, 1_048_576]) {
        const text = 'ä'.repeat(length / 2);
        expect(await echoed(socket, text)).toEqual({ data: Buffer.from(text), isBinary: false });
        const binary = Buffer.from(Array.from({ length: Math.min(length, 4_096) }, (_, index) => (index * 7) % 256));
        const message = Buffer.concat(Array.from({ length: Math.max(1, length / 4_096) }, () => binary));
        const reply = await echoed(socket, message);
        expect([reply.isBinary, reply.data.length, digest(reply.data)]).toEqual([true, message.length, digest(message)]);
      }
      socket.terminate();
      await countsAtZero(balancer);
    },
    { perMessageDeflate },
  );
});

test('a message in many fragments is echoed whole', async () => {
  await withEcho(async (balancer) => {
    const socket = await opened(balancer);
    const reply = new Promise<string>((resolve) => {
      socket.once('message', (data: Buffer) => resolve(data.toString()));
    });
    for (let part = 0; part < 50; part += 1) socket.send(`part ${part};`, { fin: part === 49 });
    expect(await reply).toBe(Array.from({ length: 50 }, (_, part) => `part ${part};`).join(''));
    socket.terminate();
  });
});

test('pings are answered in both directions with their payload', async () => {
  await withEcho(async (balancer, { server }) => {
    const socket = await opened(balancer);
    const pong = once(socket, 'pong');
    socket.ping('from the client');
    expect(String((await pong)[0])).toBe('from the client');
    const [atReplica] = server.clients;
    if (atReplica === undefined) throw new Error('the replica has no connection');
    const otherPong = once(atReplica, 'pong');
    atReplica.ping('from the replica');
    expect(String((await otherPong)[0])).toBe('from the replica');
    socket.terminate();
  });
});

test.each([
  [1_000, 'done'],
  [1_001, ''],
  [3_000, 'a reason of our own'],
  [4_999, 'ümlaut'],
])('close code %s arrives in both directions', async (code, reason) => {
  await withEcho(async (balancer, { closed }) => {
    const byReplica = await opened(balancer);
    const seen = closing(byReplica);
    byReplica.send(`close:${code}:${reason}`);
    expect(await seen).toBe(`${code} ${reason}`);
    const byClient = await opened(balancer);
    const confirmed = closing(byClient);
    byClient.close(code, reason);
    expect(await confirmed).toBe(`${code} ${reason}`);
    await waitFor('the replica to see both ends', () => closed.length === 2);
    expect(closed).toEqual([`${code} ${reason}`, `${code} ${reason}`]);
    expect((await countsAtZero(balancer)).inFlight).toEqual({ 1: 0 });
  });
});

test('the replica selects the subprotocol', async () => {
  await withEcho(
    async (balancer) => {
      const socket = await opened(balancer, ['graphql-ws', 'chat.v2', 'chat.v1']);
      expect(socket.protocol).toBe('chat.v2');
      socket.terminate();
    },
    { handleProtocols: (offered) => (offered.has('chat.v2') ? 'chat.v2' : false) },
  );
});

test.each([401, 403, 503])('a refusal with %s reaches the client unchanged and frees the count', async (status) => {
  await withEcho(
    async (balancer) => {
      const socket = new WebSocket(balancer.url.replace('http', 'ws'));
      const refused = new Promise<IncomingMessage>((resolve) => {
        socket.once('unexpected-response', (_, message) => resolve(message));
      });
      socket.on('error', () => undefined);
      const message = await refused;
      expect([message.statusCode, message.headers['x-why']]).toEqual([status, 'no']);
      message.resume();
      socket.terminate();
      expect((await countsAtZero(balancer)).inFlight).toEqual({ 1: 0 });
    },
    { verifyClient: (_, done) => done(false, status, 'not today', { 'X-Why': 'no' }) },
  );
});

test('a killed replica appears to the client as a broken connection', async () => {
  await withEcho(async (balancer) => {
    const socket = await opened(balancer);
    const seen = closing(socket);
    socket.send('die');
    // 1006: closed without a close frame.
    expect(await seen).toBe('1006 ');
    expect((await countsAtZero(balancer)).inFlight).toEqual({ 1: 0 });
  });
});

test('the replica detects a disconnected client', async () => {
  await withEcho(async (balancer, { closed }) => {
    const socket = await opened(balancer);
    await echoed(socket, 'hello');
    const leftAt = performance.now();
    socket.terminate();
    await waitFor('the replica to see it', () => closed.length === 1, { everyMs: 2 });
    printFigures('a WebSocket client leaves', { 'ms until the replica sees it': performance.now() - leftAt });
    expect(closed).toEqual(['1006 ']);
    expect((await countsAtZero(balancer)).inFlight).toEqual({ 1: 0 });
  });
});

test('a draining replica keeps its sockets and gets no new ones', async () => {
  await withEcho(async (balancer, { port }) => {
    const socket = await opened(balancer);
    await balancer.link.setReplicas([aBalancerReplica(port, 1, { state: 'draining' })]);
    expect(String((await echoed(socket, 'still there')).data)).toBe('still there');
    const late = new WebSocket(balancer.url.replace('http', 'ws'));
    const [error] = await once(late, 'error');
    expect(String(error)).toContain('503');
    await waitFor('the count of one', () => balancer.link.lastStats?.inFlight['1'] === 1);
    socket.close();
    await countsAtZero(balancer);
  });
});

test('a stopping balancer keeps sockets for its grace period and accepts no more', async () => {
  await withEcho(async (balancer) => {
    const socket = await opened(balancer);
    balancer.signal('SIGTERM');
    await waitFor('it to accept no more', () => isRefused(balancer.port));
    expect(String((await echoed(socket, 'still there')).data)).toBe('still there');
    const late = new WebSocket(balancer.url.replace('http', 'ws'));
    expect(String((await once(late, 'error'))[0])).toContain('ECONNREFUSED');
    socket.close();
    expect(await balancer.exited).toBe(0);
  });
});

test('sockets still open after the grace period get a going-away close', async () => {
  await withEcho(async (balancer) => {
    const socket = await opened(balancer);
    const closed = closing(socket);
    balancer.signal('SIGTERM');
    expect(await closed).toBe('1001 ');
    expect(await balancer.exited).toBe(0);
  });
});

test('1,000 concurrent sockets each get their own messages back', async () => {
  await withEcho(async (balancer) => {
    const memory = balancer.memory();
    const sockets: WebSocket[] = [];
    for (let batch = 0; batch < 10; batch += 1) {
      sockets.push(...(await Promise.all(Array.from({ length: 100 }, () => opened(balancer, [], { perMessageDeflate: false })))));
    }
    printFigures('1,000 WebSocket connections', { 'KiB each': (balancer.memory() - memory) / 1_024 / 1_000 });
    await waitFor('all to be counted', () => balancer.link.lastStats?.inFlight['1'] === 1_000);
    for (let round = 0; round < 3; round += 1) {
      const replies = await Promise.all(sockets.map((socket, index) => echoed(socket, `${round} of ${index}`)));
      expect(replies.map(({ data }) => String(data))).toEqual(sockets.map((_, index) => `${round} of ${index}`));
    }
    const all = Promise.all(sockets.map((socket) => closing(socket)));
    for (const socket of sockets) socket.close(1_000);
    expect(new Set(await all)).toEqual(new Set(['1000 ']));
    expect((await countsAtZero(balancer)).inFlight).toEqual({ 1: 0 });
  });
});
