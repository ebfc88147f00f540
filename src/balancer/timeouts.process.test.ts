import type { RequestListener } from 'node:http';
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

const atOnce: RequestListener = (_, response) => response.end('ok');

/** A data plane in this process, with a clock that the test moves, in front of a replica. */
async function withFakeTime(
  use: (port: number, clock: FakeClock, connections: ReadonlySet<unknown>, plane: DataPlane) => Promise<void>,
  answer = atOnce,
): Promise<void> {
  await withReplicas([httpReplica(answer)], async (replica) => {
    if (replica === undefined) return;
    await withTempHome(async (dir) => {
      const clock = new FakeClock();
      const plane = new DataPlane({
        config: balancerConfig(dir),
        tls: undefined,
        clock,
        random: seededRandom(1),
        logger: createLogger('test', 'silent'),
        row: { board: Board.create(1), thread: 0 },
        metricsRow: metricsRow(createMetricsMemory(1), 0),
        limits: { files: 200, connections: 100 },
        suspect: () => undefined,
        held: () => undefined,
      });
      plane.apply({ replicas: [{ ...aBalancerReplica(replica.port), slot: 0 }], isKnown: true });
      const { port } = await plane.listen([{ port: 0 }]);
      try {
        await use(port, clock, replica.connections, plane);
      } finally {
        // Its grace ends only when the clock moves, and connections are still open when a test fails early.
        await Promise.all([plane.stop(0), clock.advance(1)]);
      }
    });
  });
}

/** Waits for all bytes in transit: on loopback they need no time, only turns of the event loop for each step. */
async function settle(): Promise<void> {
  for (let turn = 0; turn < 50; turn += 1) await nextTurn();
}

/** Advances the clock in steps no longer than those of a process that runs without interruption. */
async function pass(clock: FakeClock, ms: number): Promise<void> {
  await clock.advance(ms);
  await settle();
}

/** The number of seconds until the condition holds. It may be a few more when the kernel delivers slowly. */
async function secondsUntil(clock: FakeClock, isSo: () => boolean): Promise<number> {
  for (let second = 1; second <= 15; second += 1) {
    await pass(clock, 1_000);
    if (isSo()) return second;
  }
  return expect.unreachable('not within 15 s');
}

test('a head that is incomplete after 10 s gets 408, despite arriving bytes', async () => {
  await withFakeTime(async (port, clock) => {
    const client = new RawClient(port).send('GET / HTTP/1.1\r\nHost');
    const seconds = await secondsUntil(clock, () => {
      if (client.received === '') client.send('x');
      return client.received !== '';
    });
    expect(seconds).toBeGreaterThanOrEqual(10);
    await client.until(/^HTTP\/1\.1 408 Request Timeout\r\n[^]*"code":"request_timeout"/);
    client.destroy();
  });
});

test('a connection without any bytes is closed without a response', async () => {
  await withFakeTime(async (port, clock) => {
    const client = new RawClient(port);
    const seconds = await secondsUntil(clock, () => client.ended !== undefined);
    expect(seconds).toBeGreaterThanOrEqual(10);
    expect(client.received).toBe('');
    client.destroy();
  });
});

test('an idle client connection lasts 75 s, a replica connection its announced time', async () => {
  await withFakeTime(async (port, clock, connections) => {
    const client = new RawClient(port).send(get);
    await client.until(/ok$/);
    expect(connections.size).toBe(1);
    await pass(clock, 74_000);
    // The replica announced 60 s (its keepAliveTimeout), so the connection is closed by now.
    await waitFor('the replica to be left', () => connections.size === 0);
    expect(client.ended).toBeUndefined();
    await pass(clock, 2_000);
    await client.closed();
    client.destroy();
  });
});

/** Orders the plane to end and waits until it reacts; returns a function that reports whether it has ended. */
async function ending(plane: DataPlane): Promise<() => boolean> {
  let isOver = false;
  const end = async (): Promise<void> => {
    await plane.stop(30_000);
    isOver = true;
  };
  void end();
  await settle();
  return () => isOver;
}

test('a request that crosses with the stop on an idle connection is answered last', async () => {
  await withFakeTime(async (port, clock, _, plane) => {
    const client = new RawClient(port).send(get);
    await client.until(/ok$/);
    const isOver = await ending(plane);
    await pass(clock, 1_900);
    expect([client.ended, isOver()]).toEqual([undefined, false]);
    client.send(get);
    await client.until(/200 OK[^]*ok[^]*200 OK[^]*connection: close[^]*ok$/i);
    await client.closed();
    client.destroy();
    await waitFor('the end', isOver);
  });
});

test('a client with a connection announced as kept may send one more request', async () => {
  const held: (() => void)[] = [];
  await withFakeTime(
    async (port, clock, _, plane) => {
      const client = new RawClient(port).send(get);
      await client.until(/begun/);
      const isOver = await ending(plane);
      await pass(clock, 5_000);
      held[0]?.();
      await client.until(/ended\r\n0\r\n\r\n$/);
      await pass(clock, 1_900);
      expect([client.ended, isOver()]).toEqual([undefined, false]);
      client.send(get);
      await waitFor('the second request', () => held.length === 2);
      held[1]?.();
      await client.until(/0\r\n\r\nHTTP\/1.1 200 OK[^]*connection: close[^]*ended\r\n0\r\n\r\n$/i);
      await client.closed();
      client.destroy();
      await waitFor('the end', isOver);
    },
    (_, response) => {
      response.write('begun ');
      held.push(() => response.end('ended'));
    },
  );
});

test('a connection without another request closes 2 s after the stop', async () => {
  await withFakeTime(async (port, clock, _, plane) => {
    const clients = [new RawClient(port).send(get), new RawClient(port).send(get)];
    for (const client of clients) await client.until(/ok$/);
    const isOver = await ending(plane);
    await pass(clock, 2_500);
    for (const client of clients) {
      expect(await client.closed()).toMatch(/\r\n\r\nok$/);
      client.destroy();
    }
    await waitFor('the end', isOver);
  });
});

test('a slow client gets its last response whole despite a stop', async () => {
  const body = 'x'.repeat(60_000);
  let asked = 0;
  await withFakeTime(
    async (port, clock, _, plane) => {
      const client = new RawClient(port);
      client.socket.pause();
      client.send(get.repeat(1_000));
      // All buffers towards the client are full and no request is running: the next one has to wait.
      let before = -1;
      const isStill = (): boolean => asked === before || ((before = asked), false);
      await waitFor('the client to be waited for', () => asked > 0 && isStill(), { everyMs: 200 });
      expect(asked).toBeLessThan(1_000);
      const isOver = await ending(plane);
      await pass(clock, 5_000);
      expect(isOver()).toBe(false);
      client.socket.resume();
      await client.closed();
      const [last = ''] = client.received.split('HTTP/1.1 200 OK').slice(-1);
      expect(last).toMatch(/^[^]*connection: close\r\n/i);
      expect(last.slice(last.indexOf('\r\n\r\n') + 4)).toBe(body);
      client.destroy();
      await waitFor('the end', isOver);
    },
    (_, response) => {
      asked += 1;
      response.end(body);
    },
  );
});
