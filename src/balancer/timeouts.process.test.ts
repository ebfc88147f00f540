import { setImmediate as nextTurn } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { seededRandom } from '../shared/random.ts';
import { createLogger } from '../shared/log.ts';
import { aBalancerReplica, balancerConfig } from '../../test/support/balancer.ts';
import { FakeClock } from '../../test/support/fake-clock.ts';
import { httpReplica, RawClient, withReplicas } from '../../test/support/raw-http.ts';
import { withTempHome } from '../../test/support/temp-home.ts';
import { waitFor } from '../../test/support/wait-for.ts';
import { Board } from './board/board.ts';
import { DataPlane } from './threads/data-plane.ts';
import { createMetricsMemory, metricsRow } from './metrics/row-layout.ts';

const get = 'GET / HTTP/1.1\r\nHost: h\r\n\r\n';

/** A data plane in this process, whose time moves by hand, before a replica that answers at once. */
async function withFakeTime(use: (port: number, clock: FakeClock, connections: ReadonlySet<unknown>) => Promise<void>): Promise<void> {
  await withReplicas([httpReplica((_, response) => response.end('ok'))], async (replica) => {
    if (replica === undefined) return;
    await withTempHome(async (dir) => {
      const clock = new FakeClock();
      const plane = new DataPlane({
        config: balancerConfig(dir),
        clock,
        random: seededRandom(1),
        logger: createLogger('test', 'silent'),
        row: { board: Board.create(1), thread: 0 },
        metricsRow: metricsRow(createMetricsMemory(1), 0),
        maxConnections: 100,
        suspect: () => undefined,
      });
      plane.apply({ replicas: [{ ...aBalancerReplica(replica.port), slot: 0 }], isKnown: true });
      const { port } = await plane.listen([{ port: 0 }]);
      try {
        await use(port, clock, replica.connections);
      } finally {
        await plane.stop(0);
      }
    });
  });
}

/** Lets everything arrive that is under way: on loopback, bytes need no time, only turns of the event loop for each step of their way. */
async function settle(): Promise<void> {
  for (let turn = 0; turn < 50; turn += 1) await nextTurn();
}

/** Lets time pass in steps no longer than those of a process that is not held up. */
async function pass(clock: FakeClock, ms: number): Promise<void> {
  await clock.advance(ms);
  await settle();
}

test('a head that is not there after 10 s gets 408, however often a byte of it comes', async () => {
  await withFakeTime(async (port, clock) => {
    const client = new RawClient(port).send('GET / HTTP/1.1\r\nHost');
    await settle();
    for (let second = 0; second < 9; second += 1) {
      await pass(clock, 1_000);
      client.send('x');
    }
    expect(client.received).toBe('');
    await pass(clock, 1_500);
    await client.until(/^HTTP\/1\.1 408 Request Timeout\r\n[^]*"code":"request_timeout"/);
    client.destroy();
  });
});

test('a connection on which nothing came is closed without a word', async () => {
  await withFakeTime(async (port, clock) => {
    const client = new RawClient(port);
    await waitFor('the connection', () => !client.socket.connecting);
    await settle();
    await pass(clock, 11_000);
    await client.closed();
    expect(client.received).toBe('');
    client.destroy();
  });
});

test('an idle connection is kept for 75 s, and one to a replica for the time that the replica told', async () => {
  await withFakeTime(async (port, clock, connections) => {
    const client = new RawClient(port).send(get);
    await client.until(/ok$/);
    expect(connections.size).toBe(1);
    await pass(clock, 74_000);
    // Told 60 s (keepAliveTimeout of the replica), so it is gone by now.
    await waitFor('the replica to be left', () => connections.size === 0);
    expect(client.ended).toBeUndefined();
    await pass(clock, 2_000);
    await client.closed();
    client.destroy();
  });
});
