import { createServer } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { aBalancerReplica, withBalancer, type RunningBalancer } from '../../test/support/balancer.ts';
import { httpReplica, RawClient, rawReplica, withReplicas, type FakeReplica } from '../../test/support/raw-http.ts';
import { withTempHome } from '../../test/support/temp-home.ts';
import { waitFor } from '../../test/support/wait-for.ts';
import { testRandom } from '../../test/support/test-random.ts';

const mebibyte = 1_048_576;
/** Beyond what a stream may hold in the balancer: noise of the garbage collector and of buffers that grow once. */
const memorySlack = 24 * mebibyte;

async function before(
  starting: Promise<FakeReplica>,
  use: (balancer: RunningBalancer, replica: FakeReplica) => Promise<void>,
  changes = {},
): Promise<void> {
  await withReplicas([starting], async (replica) => {
    if (replica !== undefined) await withBalancer([aBalancerReplica(replica.port)], (balancer) => use(balancer, replica), changes);
  });
}

/** Warms the process up, so that later growth is due to the stream. */
async function settledMemory(balancer: RunningBalancer, path = '/'): Promise<number> {
  for (let turn = 0; turn < 50; turn += 1) await (await fetch(balancer.url + path)).text();
  return balancer.memory();
}

test('a slow client pauses its replica and uses little memory', async () => {
  let written = 0;
  const replica = httpReplica((incoming, response) => {
    if (incoming.url !== '/big') return response.end();
    const block = Buffer.alloc(65_536, 'x');
    response.writeHead(200, { 'Content-Length': 100 * mebibyte });
    const more = (): void => {
      while (written < 100 * mebibyte) {
        written += block.length;
        if (!response.write(block)) {
          response.once('drain', more);
          return;
        }
      }
      response.end();
    };
    more();
    return undefined;
  });
  await before(replica, async (balancer) => {
    const memory = await settledMemory(balancer);
    const client = new RawClient(balancer.port);
    client.send('GET /big HTTP/1.1\r\nHost: h\r\n\r\n');
    await client.until(/x{10}/);
    client.socket.pause();
    // The replica writes until all buffers on the path are full, and then stops.
    let last = -1;
    await waitFor(
      'the replica to be held up',
      () => {
        const isStill = written === last;
        last = written;
        return isStill;
      },
      { everyMs: 500 },
    );
    expect(written).toBeLessThan(40 * mebibyte);
    expect(balancer.memory() - memory).toBeLessThan(memorySlack);
    client.destroy();
    await balancer.link.idle();
  });
});

test('a slow replica pauses its client and uses little memory', async () => {
  const replica = rawReplica((socket, received) => {
    if (!received.startsWith('GET')) socket.pause();
    else socket.end('HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n');
  });
  await before(replica, async (balancer) => {
    const memory = await settledMemory(balancer);
    const client = new RawClient(balancer.port);
    client.send(`POST / HTTP/1.1\r\nHost: h\r\nContent-Length: ${100 * mebibyte}\r\n\r\n`);
    const block = Buffer.alloc(65_536, 'x');
    let sent = 0;
    let isFlowing = true;
    while (isFlowing && sent < 100 * mebibyte) {
      sent += block.length;
      if (client.socket.write(block)) continue;
      const drained = new Promise<boolean>((resolve) => {
        client.socket.once('drain', () => resolve(true));
      });
      isFlowing = await Promise.race([drained, sleep(1_500, false)]);
    }
    expect(sent).toBeLessThan(40 * mebibyte);
    expect(balancer.memory() - memory).toBeLessThan(memorySlack);
    client.destroy();
  });
});

test('a client that disconnects before the answer frees its replica', async () => {
  const replica = rawReplica(() => undefined);
  await before(replica, async (balancer, { connections }) => {
    const clients = Array.from({ length: 20 }, () =>
      new RawClient(balancer.port).send('POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\n\r\nx'),
    );
    await waitFor('all requests to be under way', () => balancer.link.lastStats?.inFlight['1'] === 20 && connections.size === 20);
    for (const client of clients) client.destroy();
    await waitFor('the replica to be free', () => connections.size === 0, { everyMs: 5 });
    await balancer.link.idle();
    expect(await balancer.accessLog(20)).toMatchObject(Array.from({ length: 20 }, () => ({ outcome: 'client_gone', status: 0 })));
  });
});

test('a client that disconnects within a stream or its own body frees its replica', async () => {
  const replica = rawReplica((socket, received) => {
    if (received.startsWith('GET')) socket.write('HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nabc');
  });
  await before(replica, async (balancer, { connections }) => {
    const reading = new RawClient(balancer.port).send('GET / HTTP/1.1\r\nHost: h\r\n\r\n');
    await reading.until(/abc$/);
    const writing = new RawClient(balancer.port).send('POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 10\r\n\r\nabc');
    await waitFor('both to be under way', () => connections.size === 2);
    reading.destroy();
    writing.socket.resetAndDestroy();
    await waitFor('the replica to be free', () => connections.size === 0, { everyMs: 5 });
    expect((await balancer.link.idle()).inFlight).toEqual({ 1: 0 });
  });
});

test('a client that disconnects during the connect frees the replica', async () => {
  await withTempHome(async (dir) => {
    // A forwarder that accepts the handshake and sends nothing.
    const path = `${dir}/in.sock`;
    const mute = createServer();
    await new Promise<void>((resolve) => {
      mute.listen(path, () => resolve());
    });
    try {
      await withBalancer([aBalancerReplica(0, 1, { address: { kind: 'unix', path, port: 80 } })], async (balancer) => {
        const client = new RawClient(balancer.port).send('GET / HTTP/1.1\r\nHost: h\r\n\r\n');
        await waitFor('the request to be under way', () => balancer.link.lastStats?.inFlight['1'] === 1);
        client.destroy();
        expect((await balancer.link.idle()).inFlight).toEqual({ 1: 0 });
      });
    } finally {
      mute.close();
    }
  });
});

test('counts are exact after a thousand requests, many of them cancelled', async () => {
  const replica = httpReplica((incoming, response) => {
    incoming.resume();
    const delay = testRandom() * 20;
    setTimeout(() => response.write('a'), delay);
    setTimeout(() => response.end('b'), delay * 2);
  });
  await before(replica, async (balancer) => {
    const one = async (): Promise<void> => {
      const client = new RawClient(balancer.port).send('GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n');
      await sleep(testRandom() * 30);
      client.destroy();
    };
    const worker = async (): Promise<void> => {
      for (let turn = 0; turn < 40; turn += 1) await one();
    };
    await Promise.all(Array.from({ length: 25 }, worker));
    const stats = await balancer.link.idle();
    expect(stats.inFlight).toEqual({ 1: 0 });
    expect((await fetch(balancer.url)).status).toBe(200);
  });
});

test('exact counts choose the least loaded replica', async () => {
  const holding: (() => void)[] = [];
  const slow = (): Promise<FakeReplica> =>
    httpReplica((_, response) => {
      holding.push(() => response.end());
    });
  await withReplicas([slow(), slow(), slow()], async (...replicas) => {
    await withBalancer(
      replicas.map(({ port }, index) => aBalancerReplica(port, index + 1)),
      async (balancer) => {
        const replies = Array.from({ length: 12 }, () => fetch(balancer.url));
        await waitFor('all to be placed', () => holding.length === 12);
        await waitFor('even counts', () => Object.values(balancer.link.lastStats?.inFlight ?? {}).join() === '4,4,4');
        for (const end of holding) end();
        await Promise.all(replies);
        expect((await balancer.link.idle()).inFlight).toEqual({ 1: 0, 2: 0, 3: 0 });
      },
    );
  });
});
