import { once } from 'node:events';
import { expect, test } from 'vitest';
import { aBalancerReplica, withBalancer, type RunningBalancer } from '../../test/support/balancer.ts';
import { httpReplica, RawClient, refusingPort, withReplicas, type FakeReplica } from '../../test/support/raw-http.ts';
import { waitFor } from '../../test/support/wait-for.ts';
import type { RequestQueueLimits } from '../domain/balancer-link.ts';

const echo = (): Promise<FakeReplica> =>
  httpReplica((incoming, response) => {
    incoming.pipe(response);
  });

const waitingFor = (ms: number, changes: Partial<RequestQueueLimits> = {}) => ({
  queue: { maxRequests: 1_000, maxBytes: 67_108_864, timeoutMs: ms, fromZero: false, ...changes },
});

const reasonOf = (reply: Response): readonly (string | number | null)[] => [
  reply.status,
  reply.headers.get('x-svc-reason'),
  reply.headers.get('retry-after'),
];

/** Requests that the balancer has accepted and not answered. */
const taken = (balancer: RunningBalancer): number => balancer.link.lastStats?.requestsTotal ?? 0;

test('a request after the last replica left waits for the next, with its body', async () => {
  await withReplicas([echo()], async (replica) => {
    const gone = aBalancerReplica(await refusingPort(), 1);
    await withBalancer(
      [gone],
      async (balancer) => {
        const reply = fetch(balancer.url, { method: 'POST', body: 'precious' });
        await waitFor('the request', () => taken(balancer) === 1);
        await balancer.link.setReplicas([]);
        await balancer.link.setReplicas([aBalancerReplica(replica?.port ?? 0, 2)]);
        expect(await (await reply).text()).toBe('precious');
        await balancer.link.idle();
      },
      waitingFor(300_000),
    );
  });
});

test('waiting ends with 503 when no replica arrives', async () => {
  await withBalancer(
    [aBalancerReplica(await refusingPort(), 1)],
    async (balancer) => {
      const reply = await fetch(balancer.url);
      expect(reasonOf(reply)).toEqual([503, 'no_ready_replica', '7']);
      await balancer.link.idle();
    },
    waitingFor(500),
  );
});

test('a client that disconnects while queued is forgotten', async () => {
  await withReplicas([echo()], async (replica) => {
    await withBalancer(
      [aBalancerReplica(await refusingPort(), 1)],
      async (balancer) => {
        const client = new RawClient(balancer.port);
        client.send('GET / HTTP/1.1\r\nHost: h\r\n\r\n');
        await waitFor('the request', () => taken(balancer) === 1);
        client.destroy();
        await waitFor('its line in the log', async () => (await balancer.accessLog(1))[0]?.['outcome'] === 'client_gone');
        await balancer.link.setReplicas([aBalancerReplica(replica?.port ?? 0, 2)]);
        expect(await (await fetch(balancer.url, { method: 'POST', body: 'next' })).text()).toBe('next');
        await balancer.link.idle();
      },
      waitingFor(300_000),
    );
  });
});

test('a service that scales from zero queues requests before its first replica', async () => {
  await withReplicas([echo()], async (replica) => {
    await withBalancer(
      [],
      async (balancer) => {
        const early = fetch(balancer.url, { method: 'POST', body: 'early' });
        await waitFor('it to wait', () => balancer.link.lastStats?.queued === 1);
        await balancer.link.setReplicas([aBalancerReplica(replica?.port ?? 0, 1)]);
        expect(await (await early).text()).toBe('early');
        await waitFor('an empty queue', () => balancer.link.lastStats?.queued === 0);
      },
      waitingFor(300_000, { fromZero: true }),
    );
  });
});

test('a queue timeout names scaling from zero, even after an earlier replica', async () => {
  await withReplicas([echo()], async (replica) => {
    await withBalancer(
      [],
      async (balancer) => {
        expect(reasonOf(await fetch(balancer.url))).toEqual([504, 'queue_timeout', null]);
        await balancer.link.setReplicas([aBalancerReplica(replica?.port ?? 0, 1)]);
        await balancer.link.setReplicas([]);
        expect(reasonOf(await fetch(balancer.url))).toEqual([504, 'queue_timeout', null]);
      },
      waitingFor(500, { fromZero: true }),
    );
  });
});

test('a request over the queue limits fails at once without disturbing queued requests', async () => {
  await withReplicas([echo()], async (replica) => {
    await withBalancer(
      [],
      async (balancer) => {
        const first = fetch(balancer.url, { method: 'POST', body: 'x'.repeat(6_000) });
        await waitFor('one to wait', () => balancer.link.lastStats?.queued === 1);
        expect(reasonOf(await fetch(balancer.url, { method: 'POST', body: 'x'.repeat(6_000) }))).toEqual([503, 'queue_full', '7']);
        const second = fetch(balancer.url);
        await waitFor('two to wait', () => balancer.link.lastStats?.queued === 2);
        expect(reasonOf(await fetch(balancer.url))).toEqual([503, 'queue_full', '7']);
        await balancer.link.setReplicas([aBalancerReplica(replica?.port ?? 0, 1)]);
        expect([(await first).status, (await second).status]).toEqual([200, 200]);
      },
      waitingFor(300_000, { fromZero: true, maxRequests: 2, maxBytes: 10_240 }),
    );
  });
});

test('a new replica is not overloaded by many queued requests', async () => {
  const holdMs = 100;
  const slow = httpReplica((_, response) => setTimeout(() => response.end('ok'), holdMs));
  await withReplicas([slow], async (replica) => {
    await withBalancer(
      [],
      async (balancer) => {
        const all = Array.from({ length: 150 }, () => fetch(balancer.url));
        await waitFor('all to wait', () => balancer.link.lastStats?.queued === 150);
        await balancer.link.setReplicas([aBalancerReplica(replica?.port ?? 0, 1)]);
        expect(new Set((await Promise.all(all)).map(({ status }) => status))).toEqual(new Set([200]));
        // Measured by the balancer's own clock, before the first can have been answered: a replica that stalls for a
        // while sees more at once.
        const sentAt = (await balancer.accessLog(150)).map((line) => Date.parse(String(line['at'])) + Number(line['sent_ms']));
        const first = Math.min(...sentAt);
        expect(sentAt.filter((at) => at < first + holdMs).length).toBeLessThan(75);
      },
      waitingFor(300_000, { fromZero: true }),
    );
  });
});

test('queued requests reach a new replica in order of arrival', async () => {
  const arrived: string[] = [];
  const counting = httpReplica((incoming, response) => {
    arrived.push(incoming.url ?? '');
    response.end();
  });
  const paths = Array.from({ length: 60 }, (_, number) => `/${number}`);
  await withReplicas([counting], async (replica) => {
    await withBalancer(
      [],
      async (balancer) => {
        const clients: RawClient[] = [];
        for (const path of paths) {
          const client = new RawClient(balancer.port);
          clients.push(client);
          await once(client.socket, 'connect');
          client.send(`GET ${path} HTTP/1.1\r\nHost: h\r\n\r\n`);
        }
        await waitFor('all to wait', () => balancer.link.lastStats?.queued === paths.length);
        await balancer.link.setReplicas([aBalancerReplica(replica?.port ?? 0, 1)]);
        for (const client of clients) {
          await client.untilResponse('GET');
          client.destroy();
        }
        expect(arrived).toEqual(paths);
      },
      // The replica may read parallel connections in any order.
      { maxConnectionsPerReplica: 1, ...waitingFor(300_000, { fromZero: true }) },
    );
  });
});

test('a request over the queue limits learns the phase and the expected time', async () => {
  await withReplicas([echo()], async (replica) => {
    await withBalancer(
      [],
      async (balancer) => {
        const expected = { phase: 'loading', readyAt: Date.now() + 60_000 };
        balancer.link.send(JSON.stringify({ type: 'replicas', epoch: 'told', revision: 1, replicas: [], expected }));
        await waitFor('the set', () => balancer.link.of('applied').some(({ epoch }) => epoch === 'told'));
        const first = fetch(balancer.url);
        await waitFor('one to wait', () => balancer.link.lastStats?.queued === 1);
        const refused = await fetch(balancer.url);
        expect(refused.status).toBe(503);
        expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(7);
        expect(await refused.text()).toMatch(/a replica is loading and should be ready in about \d+ s\./);
        await balancer.link.setReplicas([aBalancerReplica(replica?.port ?? 0, 1)]);
        expect((await first).status).toBe(200);
      },
      waitingFor(300_000, { fromZero: true, maxRequests: 1 }),
    );
  });
});

test('two threads together respect the limit of a replica, and answer all requests', async () => {
  let open = 0;
  let most = 0;
  const slow = httpReplica((incoming, response) => {
    open += 1;
    most = Math.max(most, open);
    setTimeout(() => {
      open -= 1;
      response.end(incoming.url);
    }, 5);
  });
  await withReplicas([slow], async (replica) => {
    await withBalancer(
      [aBalancerReplica(replica?.port ?? 0, 1)],
      async (balancer) => {
        const replies = await Promise.all(
          Array.from({ length: 200 }, async (_, index) => (await fetch(`${balancer.url}/${index}`)).text()),
        );
        expect(replies).toEqual(Array.from({ length: 200 }, (_, index) => `/${index}`));
        expect(most).toBeLessThanOrEqual(4);
        await balancer.link.idle();
      },
      { threads: 2, maxConnectionsPerReplica: 4, ...waitingFor(300_000) },
    );
  });
});

test('a request that waits in vain for a full replica is answered 503 overloaded', async () => {
  const never = httpReplica(() => undefined);
  await withReplicas([never], async (replica) => {
    await withBalancer(
      [aBalancerReplica(replica?.port ?? 0, 1)],
      async (balancer) => {
        const leaving = new AbortController();
        const held = fetch(balancer.url, { signal: leaving.signal }).catch(() => undefined);
        await waitFor('the first request', () => balancer.link.lastStats?.inFlight['1'] === 1);
        expect(reasonOf(await fetch(balancer.url))).toEqual([503, 'overloaded', '7']);
        leaving.abort();
        await held;
        await balancer.link.idle();
      },
      { maxConnectionsPerReplica: 1, ...waitingFor(500) },
    );
  });
});
