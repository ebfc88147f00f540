import { connect as connectHttp2 } from 'node:http2';
import type { Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { describe, expect, test } from 'vitest';
import { aBalancerReplica, sharedBalancer, type RunningBalancer } from '../../test/support/balancer.ts';
import { RawClient, rawExchange, rawReplica, scriptedReplica, withReplicas, type FakeReplica } from '../../test/support/raw-http.ts';
import { waitFor } from '../../test/support/wait-for.ts';

const withSharedBalancer = sharedBalancer();

/** The shared balancer in front of one replica. */
async function behind(
  starting: Promise<FakeReplica>,
  use: (balancer: RunningBalancer, replica: FakeReplica) => Promise<void>,
): Promise<void> {
  await withReplicas([starting], async (replica) => {
    if (replica !== undefined) await withSharedBalancer([aBalancerReplica(replica.port)], (balancer) => use(balancer, replica));
  });
}

const get = 'GET / HTTP/1.1\r\nHost: h\r\n\r\n';
const getAndClose = 'GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n';
const ok = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok';
const statusOf = (text: string): number => Number(/^HTTP\/1\.1 (\d+)/.exec(text)?.[1]);

describe('bytes that are not HTTP/1 get 400 at once', () => {
  test.each([
    ['HTTP/0.9', 'GET /\r\n'],
    ['HTTP/0.9 with a bare LF', 'GET /\n'],
    ['an HTTP/2 preface', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'],
    ['the beginning of a TLS hello', '\u0016\u0003\u0001'],
    ['an SSH greeting', 'SSH-2.0-OpenSSH_9\r\n'],
    ['zeros', '\u0000\u0000\u0000\u0000'],
  ])('%s', async (_, bytes) => {
    await behind(scriptedReplica(ok), async (balancer, replica) => {
      const { received, ended } = await rawExchange(balancer.port, bytes);
      expect([statusOf(received), ended, replica.accepted()]).toEqual([400, 'end', 0]);
    });
  });

  test('a TLS client and an HTTP/2 client fail at once', async () => {
    await behind(scriptedReplica(ok), async (balancer) => {
      const failed: string[] = [];
      const secure = connectTls({ port: balancer.port, host: '127.0.0.1', rejectUnauthorized: false });
      secure.on('error', () => failed.push('tls'));
      const session = connectHttp2(balancer.url);
      session.on('error', () => failed.push('http2'));
      try {
        await waitFor('both to fail', () => failed.includes('tls') && failed.includes('http2'));
      } finally {
        secure.destroy();
        session.destroy();
      }
      expect((await rawExchange(balancer.port, getAndClose)).received).toMatch(/\r\n\r\nok$/);
    });
  });
});

describe('a connection to a replica is not reused', () => {
  test.each([
    ['when a body follows 204', 'HTTP/1.1 204 No Content\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\npoison', 'GET'],
    ['when a body follows 304', 'HTTP/1.1 304 Not Modified\r\nContent-Length: 6\r\n\r\npoison', 'GET'],
    ['when a body follows the answer to HEAD', 'HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\npoison', 'HEAD'],
    ['when a body was announced with 204', 'HTTP/1.1 204 No Content\r\nContent-Length: 6\r\n\r\n', 'GET'],
    ['when more follows the last chunk', 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\npoison', 'GET'],
    ['when the replica announced that it closes it', 'HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n', 'GET'],
    ['when the replica speaks HTTP/1.0', 'HTTP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n', 'GET'],
  ])('%s', async (_, answer, method) => {
    await behind(scriptedReplica(answer), async (balancer, replica) => {
      for (let turn = 1; turn <= 4; turn += 1) {
        const { received } = await rawExchange(balancer.port, getAndClose.replace('GET', method));
        expect(received.match(/HTTP\/1\.1/g)).toHaveLength(1);
        expect(received).not.toContain('poison');
        expect(replica.accepted()).toBe(turn);
      }
      await balancer.link.idle();
    });
  });

  test('when the response came before the whole request was sent', async () => {
    const hasty = rawReplica((socket, received) => {
      if (received.endsWith('\r\n\r\nabc') || received.startsWith('GET')) socket.write(ok);
    });
    await behind(hasty, async (balancer, replica) => {
      const client = new RawClient(balancer.port).send('POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 10\r\n\r\nabc');
      expect(await client.until(/ok$/)).not.toBeNull();
      await waitFor('the connection to be dropped', () => replica.connections.size === 0);
      expect((await rawExchange(balancer.port, getAndClose)).received).toMatch(/\r\n\r\nok$/);
      expect(replica.accepted()).toBe(2);
      client.destroy();
    });
  });

  test('when the client disconnected in the middle of the response', async () => {
    await behind(scriptedReplica('HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc'), async (balancer, replica) => {
      const client = new RawClient(balancer.port).send(get);
      await client.until(/abc$/);
      client.destroy();
      await waitFor('the connection to be dropped', () => replica.connections.size === 0);
      expect(Object.values((await balancer.link.idle()).inFlight)).toEqual([0]);
    });
  });
});

describe('interim responses of a replica', () => {
  test('100 and 103 pass, others do not, and 8 are accepted', async () => {
    const early =
      'HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 102 Processing\r\n\r\nHTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 199 Odd\r\n\r\n'.repeat(2);
    await behind(scriptedReplica(early + ok), async (balancer) => {
      const { received } = await rawExchange(balancer.port, getAndClose);
      expect([...received.matchAll(/HTTP\/1\.1 (\d+)/g)].map(([, status]) => status)).toEqual(['100', '103', '100', '103', '200']);
    });
  });

  test('endless interim responses give 502', async () => {
    await behind(scriptedReplica('HTTP/1.1 102 Processing\r\n\r\n'.repeat(9)), async (balancer) => {
      expect(statusOf((await rawExchange(balancer.port, getAndClose)).received)).toBe(502);
    });
  });

  test('a client of HTTP/1.0 gets no interim response', async () => {
    await behind(scriptedReplica(`HTTP/1.1 103 Early Hints\r\n\r\n${ok}`), async (balancer) => {
      const { received } = await rawExchange(balancer.port, 'GET / HTTP/1.0\r\n\r\n');
      expect(received.match(/HTTP\/1\.1/g)).toHaveLength(1);
    });
  });

  test('101 in answer to an upgrade that was not passed on gives 502', async () => {
    const switching = 'HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n';
    let asked = '';
    const replica = rawReplica((socket, received) => {
      asked = received;
      socket.write(switching);
    });
    await behind(replica, async (balancer) => {
      const request =
        'GET / HTTP/1.1\r\nHost: h\r\nConnection: Upgrade, HTTP2-Settings, close\r\nUpgrade: h2c\r\nHTTP2-Settings: AAAA\r\n\r\n';
      expect(statusOf((await rawExchange(balancer.port, request)).received)).toBe(502);
      expect(asked).not.toMatch(/upgrade|http2-settings|h2c/i);
    });
  });
});

describe('a malformed request', () => {
  test('with a fault in its body gets 400 and reaches the replica without end', async () => {
    let received = '';
    const reading = rawReplica((_, all) => {
      received = all;
    });
    await behind(reading, async (balancer, replica) => {
      const client = new RawClient(balancer.port).send('POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n');
      await waitFor('the first chunk', () => received.endsWith('3\r\nabc\r\n'));
      client.send('zz\r\n');
      expect(statusOf(await client.closed())).toBe(400);
      await waitFor('the connection to be dropped', () => replica.connections.size === 0);
      expect(received).toMatch(/3\r\nabc\r\n$/);
      await balancer.link.idle();
      client.destroy();
    });
  });

  test('after a valid one gets 400, and later requests are ignored', async () => {
    let asked = 0;
    const counting = rawReplica((socket) => {
      asked += 1;
      socket.write(ok);
    });
    await behind(counting, async (balancer) => {
      const { received } = await rawExchange(balancer.port, `${get}GET /\u0000 HTTP/1.1\r\nHost: h\r\n\r\n${get}`);
      expect([...received.matchAll(/HTTP\/1\.1 (\d+)/g)].map(([, status]) => status)).toEqual(['200', '400']);
      expect(asked).toBe(1);
    });
  });
});

test.each([
  ['with LF', 'data: 1\n\n'],
  ['with CRLF', 'data: 1\r\n\r\n'],
  ['with CR', 'data: 1\r\r'],
])('an event reports a broken event stream to its reader: lines that end %s', async (_, event) => {
  const answer = `HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n${event.length}\r\n${event}\r\n`;
  await behind(
    scriptedReplica(answer, (socket) => setTimeout(() => socket.end(), 50)),
    async (balancer) => {
      const client = new RawClient(balancer.port).send(get);
      const text = await client.closed();
      expect(text).toContain('event: error\ndata: {"error":');
      expect(text).not.toMatch(/0\r\n\r\n$/);
      client.destroy();
    },
  );
});

test('bytes on an idle connection never answer a request sent at the same moment', async () => {
  const goodbye = 'HTTP/1.1 408 Request Timeout\r\nContent-Length: 0\r\nConnection: close\r\n\r\n';
  const sockets: Socket[] = [];
  const replica = rawReplica((socket) => {
    sockets.push(socket);
    socket.write(ok);
  });
  await behind(replica, async (balancer) => {
    for (let round = 0; round < 10; round += 1) {
      const client = new RawClient(balancer.port).send(get);
      await client.until(/ok$/);
      client.received = '';
      balancer.signal('SIGSTOP');
      await new Promise<void>((resolve) => {
        client.socket.write(getAndClose, () => resolve());
      });
      await new Promise<void>((resolve) => {
        sockets.at(-1)?.end(goodbye, () => resolve());
      });
      balancer.signal('SIGCONT');
      expect(statusOf(await client.closed())).toBe(200);
    }
  });
});

const poison = 'HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\npoison';

/** The request's method, the head of its reply, and whether the connection serves another request. */
const bodiless: readonly (readonly [string, string, boolean])[] = [
  ['HEAD', '200 OK\r\nContent-Length: 61', false],
  ['HEAD', '200 OK\r\nTransfer-Encoding: chunked', false],
  ['HEAD', '200 OK', false],
  ['HEAD', '200 OK\r\nContent-Length: 0', true],
  ['GET', '304 Not Modified\r\nContent-Length: 61', false],
  ['GET', '304 Not Modified\r\nTransfer-Encoding: chunked', false],
  ['GET', '304 Not Modified\r\nETag: "a"', false],
  ['GET', '204 No Content\r\nContent-Length: 61', false],
  ['GET', '204 No Content\r\nTransfer-Encoding: chunked', false],
  ['GET', '204 No Content', false],
  ['GET', '204 No Content\r\nContent-Length: 0', true],
  ['GET', '103 Early Hints\r\nContent-Length: 61\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 0', false],
];

test.each(bodiless.filter(([, , isReused]) => !isReused))(
  'a late body after a reply to %s with %j does not reach the next client',
  async (method, head) => {
    const replica = rawReplica((socket, received, bytes) => {
      if (received.length > bytes.length) socket.write(poison);
      else socket.write(bytes.includes('/first') ? `HTTP/1.1 ${head}\r\n\r\n` : ok);
    });
    await behind(replica, async (balancer) => {
      const first = new RawClient(balancer.port);
      first.send(`${method} /first HTTP/1.1\r\nHost: h\r\n\r\n`);
      await first.until(/ (200|204|304) [^]*\r\n\r\n$/);
      const next = new RawClient(balancer.port);
      next.send(getAndClose);
      expect(await next.closed()).toMatch(/\r\n\r\nok$/);
      first.destroy();
    });
  },
);

test.each(bodiless)('after a reply to %s with %j the connection serves another request: %s', async (method, head, isReused) => {
  await behind(scriptedReplica(`HTTP/1.1 ${head}\r\n\r\n`), async (balancer, { accepted }) => {
    const ask = (): Promise<unknown> => rawExchange(balancer.port, `${method} / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n`);
    await ask();
    const before = accepted();
    await ask();
    expect(accepted() === before).toBe(isReused);
  });
});
