import { describe, expect, test } from 'vitest';
import { aBalancerReplica, withBalancer, type AccessLine, type RunningBalancer } from '../../test/support/balancer.ts';
import {
  httpReplica,
  RawClient,
  rawExchange,
  rawReplica,
  refusingPort,
  scriptedReplica,
  withReplicas,
  type FakeReplica,
} from '../../test/support/raw-http.ts';
import { waitFor } from '../../test/support/wait-for.ts';

const getAndClose = 'GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n';

const healthy = (name = 'ok'): Promise<FakeReplica> =>
  httpReplica((incoming, response) => {
    incoming.resume();
    incoming.on('end', () => response.end(name));
  });

/** Accepts and closes the connection. */
const hangsUp = (): Promise<FakeReplica> => rawReplica((socket) => socket.resetAndDestroy());

/** Answers everything with 500. */
const failing = (): Promise<FakeReplica> => httpReplica((_, response) => response.writeHead(500).end());

/** Accepts, reads and never answers. */
const silent = (): Promise<FakeReplica> => rawReplica(() => undefined);

async function beside(
  faulty: Promise<FakeReplica>,
  use: (balancer: RunningBalancer, faulty: FakeReplica, healthy: FakeReplica) => Promise<void>,
  changes = {},
): Promise<void> {
  await withReplicas([faulty, healthy()], async (bad, good) => {
    if (bad === undefined || good === undefined) return;
    const replicas = [aBalancerReplica(bad.port, 1), aBalancerReplica(good.port, 2)];
    await withBalancer(replicas, (balancer) => use(balancer, bad, good), { policy: 'round_robin', ...changes });
  });
}

async function alone(
  faulty: Promise<FakeReplica>,
  use: (balancer: RunningBalancer, faulty: FakeReplica) => Promise<void>,
  changes = {},
): Promise<void> {
  await withReplicas([faulty], async (bad) => {
    if (bad !== undefined) await withBalancer([aBalancerReplica(bad.port)], (balancer) => use(balancer, bad), changes);
  });
}

const reasonOf = (text: string): string | undefined => /X-Svc-Reason: (\S+)/.exec(text)?.[1];

/** The arrival of a request, ms since the epoch. */
const msOf = (line: AccessLine | undefined): number => Date.parse(String(line?.['at']));

describe('without an available replica', () => {
  test('an empty set gives 503 at once, as JSON with advice', async () => {
    await withBalancer([], async (balancer) => {
      const reply = await fetch(balancer.url, { method: 'POST', body: 'x'.repeat(100_000) });
      expect([reply.status, reply.headers.get('x-svc-reason'), reply.headers.get('retry-after')]).toEqual([503, 'no_ready_replica', '7']);
      const message = 'No replica of service chat is ready.';
      expect(await reply.json()).toEqual({ error: { message, type: 'server_error', code: 'no_ready_replica' } });
      await waitFor('both counts', () => balancer.link.lastStats?.requestsTotal === 1 && balancer.link.lastStats.errorsTotal === 1);
    });
  });

  test('a set with only draining replicas gives 503', async () => {
    await withReplicas([healthy()], async (replica) => {
      if (replica === undefined) return;
      await withBalancer([aBalancerReplica(replica.port, 1, { state: 'draining' })], async (balancer) => {
        expect((await fetch(balancer.url)).status).toBe(503);
        expect(replica.accepted()).toBe(0);
      });
    });
  });

  test('a refusal by the only replica gives 503 and a suspicion for the reconciler', async () => {
    await withBalancer([aBalancerReplica(await refusingPort(), 9)], async (balancer) => {
      const beganAt = performance.now();
      expect((await fetch(balancer.url)).status).toBe(503);
      await waitFor('suspect', () => balancer.link.of('suspect').some((report) => report.replicaId === 9 && report.reason === 'refused'));
      for (let turn = 0; turn < 5; turn += 1) await fetch(balancer.url);
      const seconds = (performance.now() - beganAt) / 1_000;
      // At most one each second.
      expect(balancer.link.of('suspect').length).toBeLessThanOrEqual(1 + Math.floor(seconds));
      await balancer.link.idle();
    });
  });
});

describe('an unreachable replica', () => {
  test('that refuses a connect loses the request to another one and is then avoided', async () => {
    await withReplicas([healthy()], async (good) => {
      if (good === undefined) return;
      const replicas = [aBalancerReplica(await refusingPort(), 1), aBalancerReplica(good.port, 2)];
      await withBalancer(
        replicas,
        async (balancer) => {
          const reply = await fetch(balancer.url, { method: 'POST', body: 'abc' });
          expect([reply.status, reply.headers.get('x-svc-attempts'), reply.headers.get('x-svc-replica')]).toEqual([200, '2', '2']);
          for (let turn = 0; turn < 5; turn += 1) expect((await fetch(balancer.url)).status).toBe(200);
          const [first, ...others] = await balancer.accessLog(6);
          // It is avoided for a second. On a busy machine some requests come later.
          const within = others.filter((line) => msOf(line) + Number(line['sent_ms']) < msOf(first) + 1_000);
          expect(within.filter(({ attempts }) => attempts !== 1)).toEqual([]);
          await balancer.link.idle();
        },
        { policy: 'round_robin' },
      );
    });
  });

  test('causes a long body to be sent again in full', async () => {
    const counting = httpReplica((incoming, response) => {
      let bytes = 0;
      incoming.on('data', (part: Buffer) => {
        bytes += part.length;
      });
      incoming.on('end', () => response.end(String(bytes)));
    });
    await withReplicas([counting], async (good) => {
      if (good === undefined) return;
      const replicas = [aBalancerReplica(await refusingPort(), 1), aBalancerReplica(good.port, 2)];
      await withBalancer(
        replicas,
        async (balancer) => {
          const reply = await fetch(balancer.url, { method: 'POST', body: 'x'.repeat(900_000) });
          expect([await reply.text(), reply.headers.get('x-svc-attempts')]).toEqual(['900000', '2']);
        },
        { policy: 'round_robin' },
      );
    });
  });
});

describe('a connection lost before the answer', () => {
  test('moves a GET to another replica', async () => {
    await beside(hangsUp(), async (balancer) => {
      const reply = await fetch(balancer.url);
      expect([reply.status, reply.headers.get('x-svc-attempts')]).toEqual([200, '2']);
      await waitFor('suspect', () => balancer.link.of('suspect').some((report) => report.reason === 'reset'));
      await balancer.link.idle();
    });
  });

  test('does not retry a POST, which may have begun to run', async () => {
    await beside(hangsUp(), async (balancer, bad, good) => {
      const reply = await fetch(balancer.url, { method: 'POST', body: 'x' });
      expect([reply.status, reply.headers.get('x-svc-reason')]).toEqual([502, 'replica_lost']);
      expect([bad.accepted(), good.accepted()]).toEqual([1, 0]);
      await balancer.link.idle();
    });
  });

  test('retries a POST when the service allows it', async () => {
    await beside(
      hangsUp(),
      async (balancer) => {
        expect((await fetch(balancer.url, { method: 'POST', body: 'x' })).status).toBe(200);
      },
      { retryUnsafe: true },
    );
  });

  test('does not retry a request with a body too long to keep', async () => {
    const late = rawReplica((socket, received) => {
      if (received.length > 2_000_000) socket.resetAndDestroy();
    });
    await beside(late, async (balancer) => {
      const reply = await fetch(balancer.url, { method: 'PUT', body: 'x'.repeat(2_100_000) }).catch(() => undefined);
      expect(reply?.status ?? 502).toBe(502);
      await balancer.link.idle();
    });
  });

  test('causes three attempts at most', async () => {
    await withReplicas([hangsUp(), hangsUp(), hangsUp(), hangsUp()], async (...bad) => {
      await withBalancer(
        bad.map(({ port }, index) => aBalancerReplica(port, index)),
        async (balancer) => {
          expect((await fetch(balancer.url)).status).toBe(502);
          expect(bad.reduce((sum, replica) => sum + replica.accepted(), 0)).toBe(3);
        },
      );
    });
  });
});

describe('a response that breaks off', () => {
  const half = 'HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc';

  test.each([
    ['a short body', half, false],
    ['a reset in the middle', half, true],
    ['chunks without an end', 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n', false],
    ['a reset of a body that ends with the connection', 'HTTP/1.0 200 OK\r\n\r\nabc', true],
  ])('%s reaches the client as an abort', async (_, answer, isReset) => {
    const replica = scriptedReplica(answer, (socket) => setTimeout(() => (isReset ? socket.resetAndDestroy() : socket.end()), 50));
    await alone(replica, async (balancer) => {
      const client = new RawClient(balancer.port).send('GET / HTTP/1.1\r\nHost: h\r\n\r\n');
      await client.closed();
      expect(client.received).not.toMatch(/0\r\n\r\n$/);
      await expect(fetch(balancer.url).then((reply) => reply.text())).rejects.toThrow('terminated');
      const [line] = await balancer.accessLog(1);
      expect(line).toMatchObject({ outcome: 'truncated', status: 200 });
      await balancer.link.idle();
      client.destroy();
    });
  });

  test('resets HTTP/1.0 clients, because a plain end would look proper', async () => {
    const replica = scriptedReplica(half.replace('10', '9'), (socket) => setTimeout(() => socket.end(), 50));
    await alone(replica, async (balancer) => {
      const { ended } = await rawExchange(balancer.port, 'GET / HTTP/1.0\r\n\r\n');
      expect(ended).toBe('reset');
    });
  });

  test('is reported to an event stream by an event', async () => {
    const answer = 'HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n9\r\ndata: 1\n\n\r\n';
    await alone(
      scriptedReplica(answer, (socket) => setTimeout(() => socket.end(), 50)),
      async (balancer) => {
        const client = new RawClient(balancer.port).send('GET / HTTP/1.1\r\nHost: h\r\n\r\n');
        await client.until(/data: 1\n\n\r\n[0-9a-f]+\r\nevent: error\ndata: \{"error":/);
        await client.closed();
        expect(client.received).not.toMatch(/0\r\n\r\n$/);
        client.destroy();
      },
    );
  });

  test.each([
    ['no HTTP at all', 'hello\r\n\r\n', 'bad_version'],
    ['both lengths', 'HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n', 'both_lengths'],
    ['an unrequested upgrade', 'HTTP/1.1 101 Switching Protocols\r\n\r\n', 'unasked_upgrade'],
    ['a bad chunk right away', 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n', 'bad_chunk'],
  ])('%s: 502', async (_, answer, fault) => {
    await alone(scriptedReplica(answer), async (balancer) => {
      const { received } = await rawExchange(balancer.port, getAndClose);
      expect([received.slice(0, 12), reasonOf(received)]).toEqual(['HTTP/1.1 502', 'replica_broke_protocol']);
      expect(await balancer.accessLog(1)).toMatchObject([{ code: 'replica_broke_protocol', fault, outcome: 'unavailable' }]);
      await balancer.link.idle();
    });
  });

  test('never passes its excess bytes to the next client', async () => {
    const poisoned = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokHTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\npoison';
    await alone(scriptedReplica(poisoned), async (balancer, replica) => {
      for (let turn = 1; turn <= 10; turn += 1) {
        const { received } = await rawExchange(balancer.port, getAndClose);
        expect(received).toMatch(/\r\n\r\nok$/);
      }
      expect(replica.accepted()).toBe(10);
    });
  });

  test('bytes on an idle connection close it', async () => {
    const replica = scriptedReplica('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok', (socket) =>
      setTimeout(() => socket.write('HTTP/1.1 200 OK\r\n\r\n'), 20),
    );
    await alone(replica, async (balancer, { connections }) => {
      await rawExchange(balancer.port, getAndClose);
      await waitFor('the connection to be dropped', () => connections.size === 0);
      expect((await rawExchange(balancer.port, getAndClose)).received).toMatch(/\r\n\r\nok$/);
    });
  });
});

describe('a replica that hangs', () => {
  test('without a first byte in time gives 504 and a suspicion for the reconciler', async () => {
    await alone(
      silent(),
      async (balancer) => {
        const reply = await fetch(balancer.url);
        expect([reply.status, reply.headers.get('x-svc-reason')]).toEqual([504, 'first_byte_timeout']);
        await waitFor('suspect', () => balancer.link.of('suspect').some((report) => report.reason === 'timeout'));
        await balancer.link.idle();
      },
      { firstByteTimeoutMs: 300 },
    );
  });

  test('and whose clients give up one after another is passed over', async () => {
    let hangs = false;
    const hanging = httpReplica((incoming, response) => {
      incoming.resume();
      if (!hangs) response.end();
    });
    await withReplicas([hanging, healthy(), healthy(), healthy()], async (...replicas) => {
      const set = replicas.map(({ port }, index) => aBalancerReplica(port, index + 1));
      await withBalancer(
        set,
        async (balancer) => {
          for (let turn = 0; turn < 40; turn += 1) await fetch(balancer.url, { method: 'POST' });
          hangs = true;
          // On a busy machine answers take longer, and a request must outlast them.
          let patienceMs = 1_000;
          const isPassedOver = (): boolean => /"replica":1,"msg":"A replica answers nothing/.test(balancer.output);
          for (let turn = 0; turn < 80 && !isPassedOver(); turn += 1) {
            const signal = AbortSignal.timeout(patienceMs);
            const isAnswered = await fetch(balancer.url, { method: 'POST', signal }).then(
              () => true,
              () => false,
            );
            if (!isAnswered) patienceMs += 200;
          }
          expect(isPassedOver()).toBe(true);
          await balancer.link.idle();
        },
        { policy: 'round_robin' },
      );
    });
  });

  test('and stops taking an upload gives 504', async () => {
    await alone(
      rawReplica((socket) => socket.pause()),
      async (balancer) => {
        const size = 50_000_000;
        const client = new RawClient(balancer.port).send(`POST / HTTP/1.1\r\nHost: h\r\nContent-Length: ${size}\r\n\r\n`);
        client.socket.write(Buffer.alloc(size));
        await client.until(/^HTTP\/1\.1 504 [^]* took no more of the request for 3 s [^]*"code":"first_byte_timeout"/);
        client.destroy();
        expect(await balancer.accessLog(1)).toMatchObject([{ status: 504, outcome: 'unavailable' }]);
        await balancer.link.idle();
      },
      { idleTimeoutMs: 3_000 },
    );
  });

  test('in the middle of a response aborts the response', async () => {
    await alone(
      scriptedReplica('HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc'),
      async (balancer) => {
        await expect(fetch(balancer.url).then((reply) => reply.text())).rejects.toThrow('terminated');
        expect(await balancer.accessLog(1)).toMatchObject([{ outcome: 'truncated' }]);
        await balancer.link.idle();
      },
      { idleTimeoutMs: 300 },
    );
  });

  test('a client that stops in the middle of its body gets 408', async () => {
    await alone(
      healthy(),
      async (balancer) => {
        const { received } = await rawExchange(balancer.port, 'POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 10\r\n\r\nabc');
        expect([received.slice(0, 12), reasonOf(received)]).toEqual(['HTTP/1.1 408', 'request_timeout']);
        await balancer.link.idle();
      },
      { idleTimeoutMs: 300 },
    );
  });

  test('five failures in a row eject a replica, up to half of all', async () => {
    await withReplicas([failing(), failing(), healthy()], async (first, second, good) => {
      if (first === undefined || second === undefined || good === undefined) return;
      const replicas = [first, second, good].map(({ port }, index) => aBalancerReplica(port, index + 1));
      await withBalancer(
        replicas,
        async (balancer) => {
          const seen: (string | null)[] = [];
          // Five failures of both take fifteen requests. Few follow, because a replica is ejected for ten seconds.
          for (let turn = 0; turn < 24; turn += 1) seen.push((await fetch(balancer.url)).headers.get('x-svc-replica'));
          const late = new Set(seen.slice(-8));
          expect(late.has('3')).toBe(true);
          expect(late.size).toBe(2);
        },
        { policy: 'round_robin' },
      );
    });
  });

  test('429 with Retry-After passes unchanged and makes the balancer avoid the replica', async () => {
    const busy = httpReplica((_, response) => response.writeHead(429, { 'Retry-After': '20' }).end('busy'));
    await beside(busy, async (balancer) => {
      const replies = [];
      for (let turn = 0; turn < 6; turn += 1) replies.push((await fetch(balancer.url)).status);
      expect(replies.filter((status) => status === 429)).toHaveLength(1);
    });
  });
});
