import type { Socket } from 'node:net';
import { describe, expect, test } from 'vitest';
import { aBalancerReplica, sharedBalancer, withBalancer, type RunningBalancer } from '../../test/support/balancer.ts';
import { GrpcCall } from '../../test/support/grpc.ts';
import { http2Replica, withHttp2, type Http2Replica, type OnHttp2Stream } from '../../test/support/http2.ts';
import { httpReplica, RawClient, rawReplica, scriptedReplica, withReplicas, type FakeReplica } from '../../test/support/raw-http.ts';
import { waitFor } from '../../test/support/wait-for.ts';
import type { BalancerConfig } from '../domain/balancer-link.ts';

/** Consecutive failures after which a replica is ejected. */
const failuresToEject = 5;
/**
 * Five for each replica plus a few: an ejection ends after 10 s, and a busy machine answers few requests in that time.
 */
const enoughToEject = 16;

const roundRobin = { policy: 'round_robin' } as const;
const withSharedBalancer = sharedBalancer(roundRobin);

/** Replica 1 is the given one and replica 2 a good one; they take turns. */
async function besideGood(
  starting: Promise<FakeReplica>,
  use: (balancer: RunningBalancer, first: FakeReplica) => Promise<void>,
  withOne: typeof withSharedBalancer = withSharedBalancer,
): Promise<void> {
  const good = httpReplica((_, response) => response.end('whole'));
  await withReplicas([starting, good], async (...replicas) => {
    await withOne(
      replicas.map(({ port }, index) => aBalancerReplica(port, index + 1)),
      async (balancer) => use(balancer, await starting),
    );
  });
}

/** A balancer of its own, for a test that reads the access log or changes a setting. */
const withOwn =
  (changes: Partial<BalancerConfig> = {}): typeof withSharedBalancer =>
  (replicas, use) =>
    withBalancer(replicas, use, { ...roundRobin, ...changes });

/** How many of `count` requests, one after the other, went to replica 1. */
async function sentToFirst(balancer: RunningBalancer, count: number): Promise<number> {
  let sent = 0;
  for (let turn = 0; turn < count; turn += 1) {
    const reply = await fetch(balancer.url, { headers: { connection: 'close' } }).catch(() => undefined);
    if (reply?.headers.get('x-svc-replica') === '1') sent += 1;
    await reply?.text().catch(() => undefined);
  }
  return sent;
}

const head = (lines: string): string => `HTTP/1.1 200 OK\r\n${lines}\r\n\r\n`;
/** Leaves time for written bytes to be read. */
const resetSoon = (socket: Socket): void => void setTimeout(() => socket.resetAndDestroy(), 20);
const breakChunkSoon = (socket: Socket): void => void setTimeout(() => socket.write('zz\r\n'), 20);
const endNow = (socket: Socket): void => void socket.end();

describe('a replica is ejected after five replies in a row that', () => {
  test.each([
    ['end before their length', `${head('Content-Length: 10')}abc`, endNow],
    ['end before their last chunk', `${head('Transfer-Encoding: chunked')}3\r\nabc\r\n`, endNow],
    ['have a broken chunk', `${head('Transfer-Encoding: chunked')}3\r\nabc\r\n`, breakChunkSoon],
    ['are reset within their body', `${head('Content-Length: 10')}abc`, resetSoon],
    ['are reset within a body that ends with the connection', `${head('Connection: close')}abc`, resetSoon],
    [
      'are event streams without their end',
      `${head('Content-Type: text/event-stream\r\nTransfer-Encoding: chunked')}9\r\ndata: 1\n\n\r\n`,
      endNow,
    ],
    ['are 500 without their end', 'HTTP/1.1 500 Oh\r\nContent-Length: 10\r\n\r\nabc', endNow],
  ])('%s', async (_, answer, end) => {
    await besideGood(scriptedReplica(answer, end), async (balancer, first) => {
      await sentToFirst(balancer, enoughToEject);
      // Each reply ends its connection. On a busy machine the balancer may read one whole and retry: no client sees that.
      expect(first.accepted()).toBe(failuresToEject);
      await balancer.link.idle();
    });
  });

  test('stop within their body for idle_timeout', async () => {
    await besideGood(
      scriptedReplica(`${head('Content-Length: 10')}abc`),
      async (balancer) => {
        expect(await sentToFirst(balancer, enoughToEject)).toBe(failuresToEject);
      },
      withOwn({ idleTimeoutMs: 200 }),
    );
  });
});

describe('a replica is not ejected when', () => {
  const twenty = 20;

  test('its replies have no length and end with the connection', async () => {
    await besideGood(scriptedReplica(`${head('Connection: close')}abc`, endNow), async (balancer) => {
      expect(await sentToFirst(balancer, twenty)).toBe(twenty / 2);
    });
  });

  test('clients disconnect within the body of its replies', async () => {
    await besideGood(
      scriptedReplica(`${head('Content-Length: 10')}abc`),
      async (balancer) => {
        for (let turn = 0; turn < twenty; turn += 1) {
          const client = new RawClient(balancer.port).send('GET / HTTP/1.1\r\nHost: h\r\n\r\n');
          await client.until(/abc|whole/);
          client.destroy();
          await balancer.link.idle();
        }
        const lines = await balancer.accessLog(twenty);
        expect(lines.filter(({ replica }) => replica === 1)).toHaveLength(twenty / 2);
      },
      withOwn(),
    );
  });

  test('its WebSocket connections end by any cause', async () => {
    const accept = 'HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: x\r\n\r\n';
    const upgrade =
      'GET / HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: a\r\n\r\n';
    await besideGood(
      scriptedReplica(accept),
      async (balancer, first) => {
        for (let turn = 0; turn < twenty; turn += 1) {
          const client = new RawClient(balancer.port).send(upgrade);
          await client.until(/101 Switching|whole/);
          if (client.received.startsWith('HTTP/1.1 101')) {
            for (const socket of first.connections) socket.resetAndDestroy();
            await client.closed();
          }
          client.destroy();
        }
        const lines = await balancer.accessLog(twenty);
        expect(lines.filter(({ replica }) => replica === 1)).toHaveLength(twenty / 2);
      },
      withOwn(),
    );
  });

  test('a whole reply separates those that break off', async () => {
    let count = 0;
    const moody = rawReplica((socket) => {
      count += 1;
      if (count % 3 === 0) socket.write(`${head('Content-Length: 2')}ok`);
      else socket.end(`${head('Content-Length: 10')}abc`);
    });
    await besideGood(moody, async (balancer) => {
      expect(await sentToFirst(balancer, twenty)).toBe(twenty / 2);
    });
  });
});

test('a long open stream does not prevent successes from counting', async () => {
  let count = 0;
  const moody = rawReplica((socket, received) => {
    if (received.includes('/stream')) {
      socket.write(`${head('Transfer-Encoding: chunked')}3\r\nabc\r\n`);
      return;
    }
    count += 1;
    if (count === 5) socket.write(`${head('Content-Length: 2')}ok`);
    else socket.end(`${head('Content-Length: 10')}abc`);
  });
  await besideGood(moody, async (balancer) => {
    const streams = [0, 1].map(() => new RawClient(balancer.port).send('GET /stream HTTP/1.1\r\nHost: h\r\n\r\n'));
    await Promise.all(streams.map((client) => client.until(/abc|whole/)));
    // Four responses break off, one is whole, four break off.
    expect(await sentToFirst(balancer, 18)).toBe(9);
    for (const client of streams) client.destroy();
  });
});

const streaming = (): Promise<FakeReplica> => scriptedReplica(`${head('Transfer-Encoding: chunked')}3\r\nabc\r\n`);

test('many streams cut at once by restarts eject no more than half of the replicas', async () => {
  await withReplicas([streaming(), streaming(), streaming(), streaming()], async (...replicas) => {
    await withBalancer(
      replicas.map(({ port }, index) => aBalancerReplica(port, index + 1)),
      async (balancer) => {
        const clients = Array.from({ length: 80 }, () => new RawClient(balancer.port).send('GET / HTTP/1.1\r\nHost: h\r\n\r\n'));
        await Promise.all(clients.map((client) => client.until(/abc/)));
        for (const { connections } of replicas) for (const socket of connections) socket.resetAndDestroy();
        await Promise.all(clients.map((client) => client.closed()));
        const seen = new Set<string | undefined>();
        for (let turn = 0; turn < 8; turn += 1) {
          const client = new RawClient(balancer.port).send('GET / HTTP/1.1\r\nHost: h\r\n\r\n');
          seen.add((await client.until(/X-Svc-Replica: (\d)[^]*abc/))[1]);
          clients.push(client);
        }
        expect(seen.size).toBe(2);
        for (const client of clients) client.destroy();
      },
      { threads: 2, policy: 'round_robin' },
    );
  });
});

const whole: OnHttp2Stream = (stream) => {
  stream.respond({ ':status': 200, 'content-type': 'application/grpc' }, { waitForTrailers: true });
  stream.on('wantTrailers', () => stream.sendTrailers({ 'grpc-status': '0' }));
  stream.end('whole');
};

const begun =
  (then: (stream: Parameters<OnHttp2Stream>[0]) => void): OnHttp2Stream =>
  (stream) => {
    stream.respond({ ':status': 200, 'content-type': 'application/grpc' });
    stream.write('abc', () => void setTimeout(() => then(stream), 20));
  };

async function besideWhole(
  first: OnHttp2Stream,
  use: (balancer: RunningBalancer, ask: () => Promise<void>, atFirst: () => number) => Promise<void>,
): Promise<void> {
  let streams = 0;
  const counting: OnHttp2Stream = (...stream) => {
    streams += 1;
    return first(...stream);
  };
  const replicas: readonly Http2Replica[] = await Promise.all([http2Replica(counting), http2Replica(whole)]);
  try {
    await withBalancer(
      replicas.map(({ port }, index) => aBalancerReplica(port, index + 1)),
      (balancer) =>
        withHttp2(balancer.url, (client) =>
          use(
            balancer,
            async () => {
              await new GrpcCall(client, '/')
                .finish()
                .result()
                .catch(() => undefined);
            },
            () => streams,
          ),
        ),
      { policy: 'round_robin', protocol: 'h2c' },
    );
  } finally {
    await Promise.all(replicas.map((replica) => replica.close()));
  }
}

describe('over HTTP/2, a replica is ejected after five replies in a row that', () => {
  test.each([
    ['are reset', begun((stream) => stream.close(2))],
    ['are reset without an error code', begun((stream) => stream.close(0))],
    ['end with their connection', begun((stream) => stream.session?.destroy())],
    ['are gRPC without a status', begun((stream) => stream.end())],
  ])('%s', async (_, first) => {
    await besideWhole(first, async (balancer, ask, atFirst) => {
      for (let turn = 0; turn < enoughToEject; turn += 1) await ask();
      // On a busy machine the balancer may read a reply and its end at once, and retry: no client sees that.
      expect(atFirst()).toBe(failuresToEject);
      await waitFor('counts of zero', async () => (await balancer.link.idle()) !== undefined);
    });
  });
});
