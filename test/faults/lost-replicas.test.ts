import type { ServerResponse } from 'node:http';
import { describe, expect, test } from 'vitest';
import { aBalancerReplica, withBalancer, type AccessLine, type RunningBalancer } from '../support/balancer.ts';
import { http2Replica, withHttp2 } from '../support/http2.ts';
import { httpReplica, RawClient, withReplicas } from '../support/raw-http.ts';
import { waitFor } from '../support/wait-for.ts';
import type { BalancerConfig, LostReplica } from '../../src/domain/balancer-link.ts';

/** Two replicas; the first holds its requests, and the second answers. */
interface World {
  readonly balancer: RunningBalancer;
  readonly held: readonly ServerResponse[];
  /** Applies an endpoint set in which the first replica has this condition, and the second serves or does not. */
  readonly applyReplicas: (first: 'serving' | 'draining' | LostReplica, isSecondServing?: boolean) => Promise<void>;
}

async function withHolding(use: (world: World) => Promise<void>, changes: Partial<BalancerConfig> = {}): Promise<void> {
  const held: ServerResponse[] = [];
  const holding = httpReplica((request, response) => {
    if (request.url === '/quick') response.end('quick');
    else if (request.url === '/begun') response.write('begun');
    else held.push(response);
  });
  const answering = httpReplica((request, response) => {
    let bytes = 0;
    request.on('data', (part: Buffer) => {
      bytes += part.length;
    });
    request.on('end', () => response.end(`other ${bytes}`));
  });
  await withReplicas([holding, answering], async (first, second) => {
    if (first === undefined || second === undefined) return;
    await withBalancer(
      [],
      async (balancer) => {
        await use({
          balancer,
          held,
          applyReplicas(state, isSecondServing = true) {
            const isLost = state === 'hung' || state === 'gone';
            const firstReplica = aBalancerReplica(first.port, 1, isLost ? { state: 'draining', lost: state } : { state });
            return balancer.link.setReplicas([firstReplica, ...(isSecondServing ? [aBalancerReplica(second.port, 2)] : [])]);
          },
        });
      },
      {
        firstByteTimeoutMs: 60_000,
        idleTimeoutMs: 60_000,
        threads: 2,
        queue: { maxRequests: 10, maxBytes: 1_000_000, timeoutMs: 60_000, fromZero: false },
        ...changes,
      },
    );
  });
}

const request = (method: string, path = '/', lines = ''): string => `${method} ${path} HTTP/1.1\r\nHost: h\r\n${lines}\r\n`;

/** Makes replica 1 alone, which has answered before, hold one request. */
async function hold({ balancer, held, applyReplicas }: World, text: string): Promise<RawClient> {
  await applyReplicas('serving', false);
  const first = new RawClient(balancer.port).send(request('GET', '/quick', 'Connection: close\r\n'));
  await first.closed();
  const before = held.length;
  const client = new RawClient(balancer.port).send(text);
  await waitFor('the request to be held', () => held.length > before);
  return client;
}

/** The access log line of the held request. The other one is of `/quick`; threads write their lines in either order. */
async function heldLine({ balancer }: World): Promise<AccessLine | undefined> {
  const lines = await balancer.accessLog(2);
  expect(lines).toHaveLength(2);
  return lines.find(({ failed }) => failed !== undefined);
}

describe.each(['hung', 'gone'] as const)('a replica that is %s', (lost) => {
  test('a GET that waits for its first byte moves to another replica', async () => {
    await withHolding(async (world) => {
      const client = await hold(world, request('GET'));
      await world.applyReplicas(lost);
      expect(await client.until(/^HTTP\/1\.1 200 [^]*X-Svc-Replica: 2[^]*other 0$/)).not.toBeNull();
      expect(await heldLine(world)).toMatchObject({ attempts: 2, failed: [{ replica: 1, why: 'stalled' }], outcome: 'ok' });
      await world.balancer.link.idle();
      client.destroy();
    });
  });

  test('a POST that waits for its first byte gets 504 with the reason', async () => {
    await withHolding(async (world) => {
      const client = await hold(world, request('POST', '/', 'Content-Length: 0\r\n'));
      await world.applyReplicas(lost);
      expect(await client.until(/^HTTP\/1\.1 504 [^]*X-Svc-Reason: replica_unresponsive[^]*"code":"replica_unresponsive"/)).not.toBeNull();
      expect(await heldLine(world)).toMatchObject({ status: 504, outcome: 'unavailable', failed: [{ why: 'stalled' }] });
      await world.balancer.link.idle();
      client.destroy();
    });
  });

  test('a POST moves when the service declares it repeatable', async () => {
    await withHolding(
      async (world) => {
        const client = await hold(world, request('POST', '/', 'Content-Length: 3\r\n').concat('abc'));
        await world.applyReplicas(lost);
        expect(await client.until(/^HTTP\/1\.1 200 [^]*other 3$/)).not.toBeNull();
        client.destroy();
      },
      { retryUnsafe: true },
    );
  });

  test('a PUT moves while the client still sends its body', async () => {
    await withHolding(async (world) => {
      const client = await hold(world, request('PUT', '/', 'Content-Length: 6\r\n').concat('abc'));
      await world.applyReplicas(lost);
      await waitFor('it to move', () => world.balancer.link.lastStats?.inFlight[2] === 1);
      client.send('def');
      expect(await client.until(/^HTTP\/1\.1 200 [^]*other 6$/)).not.toBeNull();
      client.destroy();
    });
  });

  test('a PUT moves regardless of the speed of its body', async () => {
    await withHolding(async (world) => {
      const client = await hold(world, request('PUT', '/', 'Content-Length: 100000\r\n'));
      let sent = 0;
      // More often than requests check their replica.
      const sending = setInterval(() => {
        client.send('x'.repeat(100));
        sent += 100;
      }, 50);
      try {
        await world.applyReplicas(lost);
        await waitFor('it to move', () => world.balancer.link.lastStats?.inFlight[2] === 1);
      } finally {
        clearInterval(sending);
      }
      client.send('x'.repeat(100_000 - sent));
      expect(await client.until(/^HTTP\/1\.1 200 [^]*other 100000$/)).not.toBeNull();
      client.destroy();
    });
  });

  test('after 100 Continue a PUT moves with its body, and a POST gets 504', async () => {
    await withHolding(async (world) => {
      const put = await hold(world, request('PUT', '/', 'Content-Length: 3\r\nExpect: 100-continue\r\n'));
      const post = new RawClient(world.balancer.port).send(request('POST', '/', 'Content-Length: 3\r\nExpect: 100-continue\r\n'));
      for (const client of [put, post]) {
        await client.until(/^HTTP\/1\.1 100 [^]*\r\n\r\n$/);
        client.send('abc');
      }
      await waitFor('both to be held', () => world.held.length === 2);
      await world.applyReplicas(lost);
      expect(await put.until(/HTTP\/1\.1 200 [^]*other 3$/)).not.toBeNull();
      expect(await post.until(/HTTP\/1\.1 504 [^]*X-Svc-Reason: replica_unresponsive/)).not.toBeNull();
      await world.balancer.link.idle();
      for (const client of [put, post]) client.destroy();
    });
  });

  test('a request whose reply has begun does not move', async () => {
    await withHolding(async (world) => {
      await world.applyReplicas('serving', false);
      const client = new RawClient(world.balancer.port).send(request('GET', '/begun'));
      await client.until(/begun/);
      const probing = await hold(world, request('GET'));
      await world.applyReplicas(lost);
      await probing.until(/other 0$/);
      await waitFor('one request to be under way', () => world.balancer.link.lastStats?.inFlight[1] === 1);
      expect(client.ended).toBeUndefined();
      client.destroy();
      probing.destroy();
    });
  });

  test('moves do not consume the retry budget', async () => {
    const many = 450;
    await withHolding(async (world) => {
      const first = await hold(world, request('GET'));
      const clients = [first, ...Array.from({ length: many }, () => new RawClient(world.balancer.port).send(request('GET')))];
      await waitFor('all to be held', () => world.held.length === clients.length);
      await world.applyReplicas(lost);
      const reportedAt = Date.now();
      for (const client of clients) await client.until(/other 0$/);
      // Three retries a second would need twice as long.
      expect(Date.now() - reportedAt).toBeLessThan((many / 3) * 500);
      for (const client of clients) client.destroy();
    });
  });

  test('an HTTP/2 request moves from an HTTP/2 replica', async () => {
    let heldStreams = 0;
    const replicas = await Promise.all([
      http2Replica((stream, { ':path': path }) => {
        if (path === '/quick') stream.end('quick');
        else heldStreams += 1;
      }),
      http2Replica((stream) => stream.end('other')),
    ]);
    try {
      await withBalancer(
        [aBalancerReplica(replicas[0].port, 1)],
        async (balancer) => {
          await withHttp2(balancer.url, async (client) => {
            await client.get('/quick');
            const waiting = client.get('/');
            const posted = new Promise<number | undefined>((resolve) => {
              const stream = client.session.request({ ':method': 'POST', ':path': '/' });
              stream.on('response', ({ ':status': status }) => resolve(status));
              stream.end();
            });
            await waitFor('the requests to be held', () => heldStreams === 2);
            await balancer.link.setReplicas([
              aBalancerReplica(replicas[0].port, 1, { state: 'draining', lost }),
              aBalancerReplica(replicas[1].port, 2),
            ]);
            expect((await waiting).body.toString()).toBe('other');
            expect(await posted).toBe(504);
          });
        },
        { protocol: 'h2c', firstByteTimeoutMs: 60_000 },
      );
    } finally {
      await Promise.all(replicas.map((replica) => replica.close()));
    }
  });
});

test.each(['GET', 'POST'])('a draining replica answers its %s', async (method) => {
  await withHolding(async (world) => {
    const client = await hold(world, request(method, '/', 'Content-Length: 0\r\n'));
    await world.applyReplicas('draining');
    const other = await fetch(world.balancer.url);
    expect(other.headers.get('x-svc-replica')).toBe('2');
    // Requests check their replica each half second.
    const reports = world.balancer.link.of('stats').length;
    await waitFor('two seconds', () => world.balancer.link.of('stats').length > reports + 2);
    world.held.at(-1)?.end('late');
    expect(await client.until(/^HTTP\/1\.1 200 [^]*X-Svc-Replica: 1[^]*late$/)).not.toBeNull();
    client.destroy();
  });
});

test('a GET at a gone replica waits while no replica serves', async () => {
  await withHolding(async (world) => {
    const client = await hold(world, request('GET'));
    await world.applyReplicas('gone', false);
    await waitFor('it to wait', () => world.balancer.link.lastStats?.queued === 1);
    await world.applyReplicas('gone');
    expect(await client.until(/^HTTP\/1\.1 200 [^]*other 0$/)).not.toBeNull();
    client.destroy();
  });
});

test.each(['hung', 'gone'] as const)('requests at a %s replica get 504 without a queue and without other replicas', async (lost) => {
  await withHolding(
    async (world) => {
      const get = await hold(world, request('GET'));
      const post = await hold(world, request('POST', '/', 'Content-Length: 0\r\n'));
      await world.applyReplicas(lost, false);
      for (const client of [get, post]) {
        expect(await client.until(/^HTTP\/1\.1 504 [^]*X-Svc-Reason: replica_unresponsive/)).not.toBeNull();
        client.destroy();
      }
    },
    { queue: { maxRequests: 10, maxBytes: 1_000_000, timeoutMs: 0, fromZero: false } },
  );
});

test('a POST at a hung replica waits as long as its replies usually take', async () => {
  await withHolding(async (world) => {
    await world.applyReplicas('serving', false);
    // At least two in one of the two threads, which then expects three quarters of their time. A POST waits four times
    // as long, because a busy machine needs seconds for the steps below.
    const slow = Array.from({ length: 3 }, () => new RawClient(world.balancer.port).send(request('GET')));
    await waitFor('them to be held', () => world.held.length === slow.length);
    await new Promise((resolve) => setTimeout(resolve, 5_000));
    for (const response of world.held) response.end('slow');
    for (const one of slow) await one.until(/slow$/);
    const client = new RawClient(world.balancer.port).send(request('POST', '/', 'Content-Length: 0\r\n'));
    await waitFor('it to be held', () => world.held.length === slow.length + 1);
    const witness = new RawClient(world.balancer.port).send(request('GET'));
    await waitFor('it to be held', () => world.held.length === slow.length + 2);
    await world.applyReplicas('hung');
    await witness.until(/other 0$/);
    expect(client.received).toBe('');
    world.held[slow.length]?.end('done');
    expect(await client.until(/^HTTP\/1\.1 200 [^]*done$/)).not.toBeNull();
    for (const one of [...slow, client, witness]) one.destroy();
  });
});

test('the balancer reports a silent replica at which a single request waits', async () => {
  await withHolding(async (world) => {
    const client = await hold(world, request('GET'));
    await waitFor('the report', () =>
      world.balancer.link.of('suspect').some(({ replicaId, reason }) => replicaId === 1 && reason === 'silent'),
    );
    // A suspicion alone moves nothing.
    await world.applyReplicas('serving');
    expect(client.received).toBe('');
    client.destroy();
  });
});
