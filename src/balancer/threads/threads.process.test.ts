import { expect, test } from 'vitest';
import { aBalancerReplica, balancerConfig, withBalancer } from '../../../test/support/balancer.ts';
import { closedLoad, failures } from '../../../test/support/load.ts';
import { httpReplica, RawClient, withReplicas, type FakeReplica } from '../../../test/support/raw-http.ts';
import { waitFor } from '../../../test/support/wait-for.ts';
import { systemClock } from '../../shared/clock.ts';
import { createLogger } from '../../shared/log.ts';
import { Board } from '../board/board.ts';
import { createMetricsMemory } from '../metrics/row-layout.ts';
import { Threads } from './threads.ts';

const set = (number: number) => ({ type: 'replicas', number, replicas: [], isKnown: true }) as const;

test('a dead thread is replaced, its counts are cleared, and other threads serve on', async () => {
  const board = Board.create(2);
  let changes = 0;
  const threads = new Threads(
    {
      config: balancerConfig('/nonexistent'),
      board,
      metrics: createMetricsMemory(2),
      limits: { files: 20, connections: 10 },
      clock: systemClock,
      logger: createLogger('test', 'silent'),
      script: new URL('../../../test/support/dying-thread.ts', import.meta.url),
      onSuspect: () => undefined,
      onHeld: () => undefined,
      tls: undefined,
      onApplied: () => undefined,
      onSockets: () => (changes += 1),
    },
    set(0),
  );
  const counted = (): readonly number[] => [board.sumOfRows(board.rowCell('inFlight', 0, 0)), board.sumOfThreads('connections')];
  try {
    expect(await threads.start([])).toBe(4_711);
    expect([counted(), changes]).toEqual([[2, 2], 0]);
    for (const number of [1, 2, 3]) {
      threads.apply(set(number));
      await waitFor(`set ${number} in force`, () => threads.appliedByAll === number && threads.living === 2);
      // The dead thread's count is gone; each new thread has counted again.
      await waitFor('fresh counts', () => counted().join() === '2,2', { describe: counted });
    }
    // A thread died at the first two sets, and each time another one listened.
    expect(changes).toBe(4);
  } finally {
    await threads.stop(0);
  }
});

/** Holds each request for a moment; `most` is the most that it had at once. */
function aReplica(holdMs: number): Promise<FakeReplica> {
  return httpReplica((_, response) => setTimeout(() => response.end('ok'), holdMs));
}

test('two threads spread requests exactly, and at the end no count remains', async () => {
  await withReplicas(
    Array.from({ length: 4 }, () => aReplica(30)),
    async (...replicas) => {
      await withBalancer(
        replicas.map(({ port }, index) => aBalancerReplica(port, index + 1)),
        async (balancer) => {
          const result = await closedLoad({ url: balancer.url }, { requests: 2_000, connections: 32 });
          expect(failures(result)).toBe(0);
          const stats = await balancer.link.idle();
          expect(stats.requestsTotal).toBe(2_000);
          const lines = await balancer.accessLog(2_000);
          // 32 requests at 4 replicas: the eighth is the last that any replica gets.
          expect(Math.max(...lines.map(({ load }) => Number(load)))).toBeLessThanOrEqual(7);
          expect(Object.keys(stats.inFlight)).toHaveLength(4);
        },
        { threads: 2 },
      );
    },
  );
});

test('beyond the connection limit of all threads a client is refused at once', async () => {
  await withReplicas([aReplica(0)], async (replica) => {
    await withBalancer(
      [aBalancerReplica(replica?.port ?? 0)],
      async (balancer) => {
        const clients = Array.from({ length: 4 }, () => new RawClient(balancer.port).send('GET / HTTP/1.1\r\nHost: h\r\n\r\n'));
        await Promise.all(clients.map((client) => client.untilResponse('GET')));
        const late = new RawClient(balancer.port);
        expect(await late.closed()).toMatch(/^HTTP\/1.1 503 [^]*x-svc-reason: overloaded/i);
        clients[0]?.destroy();
        await waitFor('a place', async () => {
          const next = new RawClient(balancer.port).send('GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n');
          return (await next.closed()).startsWith('HTTP/1.1 200');
        });
        for (const client of [late, ...clients]) client.destroy();
      },
      { threads: 2, maxConnections: 4 },
    );
  });
});
