import { spawn } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { aBalancerReplica, sharedBalancer, withBalancer, type RunningBalancer } from '../../test/support/balancer.ts';
import {
  httpReplica,
  RawClient,
  rawExchange,
  rawReplica,
  scriptedReplica,
  withReplicas,
  type FakeReplica,
} from '../../test/support/raw-http.ts';
import { needs } from '../../test/support/needs.ts';
import { withTempHome } from '../../test/support/temp-home.ts';
import { waitFor } from '../../test/support/wait-for.ts';

type Use = (balancer: RunningBalancer, replica: FakeReplica) => Promise<void>;

const withSharedBalancer = sharedBalancer();

/** The shared balancer in front of one replica. */
async function behind(starting: Promise<FakeReplica>, use: Use): Promise<void> {
  await withReplicas([starting], async (replica) => {
    if (replica !== undefined) await withSharedBalancer([aBalancerReplica(replica.port)], (balancer) => use(balancer, replica));
  });
}

/** A balancer of its own in front of one replica. */
async function aloneBehind(starting: Promise<FakeReplica>, use: Use, changes = {}): Promise<void> {
  await withReplicas([starting], async (replica) => {
    if (replica !== undefined) await withBalancer([aBalancerReplica(replica.port)], (balancer) => use(balancer, replica), changes);
  });
}

const get = 'GET /a?b HTTP/1.1\r\nHost: h:1\r\n\r\n';
const getAndClose = 'GET /a?b HTTP/1.1\r\nHost: h:1\r\nConnection: close\r\n\r\n';

const echo = (): Promise<FakeReplica> =>
  httpReplica((request, response) => {
    const parts: Buffer[] = [];
    request.on('data', (bytes: Buffer) => parts.push(bytes));
    request.on('end', () => {
      const { method, url, rawHeaders } = request;
      response.setHeader('Content-Type', 'application/json');
      response.end(JSON.stringify({ method, url, rawHeaders, body: Buffer.concat(parts).toString('latin1') }));
    });
  });

test('the replica gets a canonical request, and the client a reply with request id', async () => {
  await aloneBehind(echo(), async (balancer) => {
    const { received } = await rawExchange(balancer.port, getAndClose);
    expect(received).toMatch(/^HTTP\/1\.1 200 OK\r\n/);
    expect(received).toMatch(/\r\nConnection: close\r\n/);
    const [, id = ''] = /\r\nX-Request-Id: (\S+)\r\n/.exec(received) ?? [];
    expect(received).toContain('X-Svc-Replica: 1\r\nX-Svc-Attempts: 1\r\n');
    const seen: unknown = JSON.parse(received.slice(received.indexOf('\r\n\r\n') + 4));
    expect(seen).toEqual({
      method: 'GET',
      url: '/a?b',
      rawHeaders: [
        'Host',
        'h:1',
        'X-Forwarded-For',
        '127.0.0.1',
        'X-Forwarded-Proto',
        'http',
        'X-Forwarded-Host',
        'h:1',
        'X-Request-Id',
        id,
      ],
      body: '',
    });
    expect(await balancer.accessLog(1)).toEqual([
      expect.objectContaining({ id, method: 'GET', path: '/a', status: 200, outcome: 'ok', replica: 1, reason: 'only', attempts: 1 }),
    ]);
  });
});

test('connections to clients and replicas stay open', async () => {
  await behind(echo(), async (balancer, replica) => {
    const client = new RawClient(balancer.port);
    for (let turn = 1; turn <= 20; turn += 1) {
      client.received = '';
      client.send(get);
      await client.until(/"body":""\}/);
    }
    expect(replica.accepted()).toBe(1);
    client.destroy();
  });
});

test('pipelined requests are answered in order', async () => {
  await behind(echo(), async (balancer) => {
    const client = new RawClient(balancer.port);
    client.send(Array.from({ length: 10 }, (_, index) => `GET /${index} HTTP/1.1\r\nHost: h\r\n\r\n`).join(''));
    await client.until(/"\/9"/);
    expect([...client.received.matchAll(/"url":"\/(\d)"/g)].map(([, index]) => Number(index))).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
    client.destroy();
  });
});

test('bodies of any size pass with a length or in chunks', async () => {
  await behind(echo(), async (balancer) => {
    for (const size of [1, 1_000, 70_000, 3_000_000]) {
      const body = 'x'.repeat(size);
      const sized = await fetch(balancer.url, { method: 'POST', body });
      expect(await sized.json()).toMatchObject({ body });
      const chunked = await fetch(balancer.url, { method: 'PUT', body: new Blob([body]).stream(), duplex: 'half' });
      expect(await chunked.json()).toMatchObject({ body });
    }
  });
});

test('HTTP/1.0 clients get replies without chunks and may keep their connection', async () => {
  await behind(echo(), async (balancer) => {
    const { received } = await rawExchange(balancer.port, 'GET / HTTP/1.0\r\n\r\n');
    expect(received).toContain('"Host","localhost"');
    expect(received.toLowerCase()).not.toContain('transfer-encoding');
    const client = new RawClient(balancer.port).send('GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n');
    await client.until(/Connection: keep-alive\r\n[^]*"body":""\}/);
    client.send('GET /second HTTP/1.0\r\n\r\n');
    expect(await client.closed()).toContain('/second');
    client.destroy();
  });
});

needs('python3', () => {
  test('requests to python -m http.server succeed (HTTP/1.0, closes connections)', async () => {
    await withTempHome(async (dir) => {
      writeFileSync(join(dir, 'index.html'), 'hello');
      const child = spawn('python3', ['-u', '-m', 'http.server', '--bind', '127.0.0.1', '0'], {
        cwd: dir,
        stdio: ['ignore', 'pipe', 'ignore'],
      });
      let output = '';
      child.stdout.on('data', (bytes: Buffer) => {
        output += bytes.toString();
      });
      try {
        const [, port] = await waitFor('http.server', () => /port (\d+)/.exec(output) ?? undefined);
        await withBalancer([aBalancerReplica(Number(port))], async (balancer) => {
          for (let turn = 0; turn < 20; turn += 1) expect(await (await fetch(balancer.url)).text()).toBe('hello');
          const head = await fetch(`${balancer.url}/index.html`, { method: 'HEAD' });
          expect([head.status, head.headers.get('content-length')]).toEqual([200, '5']);
          expect((await fetch(`${balancer.url}/missing`)).status).toBe(404);
        });
      } finally {
        child.kill('SIGKILL');
      }
    });
  });
});

test('a body that ends with the connection reaches HTTP/1.1 clients in chunks', async () => {
  await behind(
    scriptedReplica('HTTP/1.0 200 OK\r\n\r\nabc', (socket) => socket.end()),
    async (balancer) => {
      const { received } = await rawExchange(balancer.port, getAndClose);
      expect(received).toContain('Transfer-Encoding: chunked\r\n');
      expect(received).toMatch(/\r\n\r\n3\r\nabc\r\n0\r\n\r\n$/);
      const old = await rawExchange(balancer.port, 'GET / HTTP/1.0\r\n\r\n');
      expect(old.received).toMatch(/\r\n\r\nabc$/);
      expect(old.ended).toBe('end');
    },
  );
});

test('100 (Continue) and early hints from the replica reach the client', async () => {
  const replica = rawReplica((socket, received) => {
    if (received.endsWith('abc')) socket.write('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok');
    else socket.write('HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\nHTTP/1.1 100 Continue\r\n\r\n');
  });
  await behind(replica, async (balancer) => {
    const client = new RawClient(balancer.port).send('POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\nExpect: 100-continue\r\n\r\n');
    await client.until(/^HTTP\/1\.1 103 Early Hints\r\nLink: <\/x>\r\n\r\nHTTP\/1\.1 100 Continue\r\n\r\n$/);
    client.send('abc');
    expect(await client.until(/200 OK\r\n[^]*\r\n\r\nok$/)).not.toBeNull();
    client.destroy();
  });
});

test('a final answer instead of 100 closes the connection', async () => {
  await behind(scriptedReplica('HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\n\r\n'), async (balancer) => {
    const { received } = await rawExchange(
      balancer.port,
      'POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\nExpect: 100-continue\r\n\r\n',
    );
    expect(received).toMatch(/^HTTP\/1\.1 413 [^]*Connection: close\r\n/);
  });
});

test('trailers pass in both directions', async () => {
  const replica = rawReplica((socket, received) => {
    const answer = `HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\nX-Sum: ${received.includes('X-Up: 1') ? 'up' : 'none'}\r\n\r\n`;
    if (received.endsWith('X-Up: 1\r\n\r\n')) socket.write(answer);
  });
  await behind(replica, async (balancer) => {
    const client = new RawClient(balancer.port);
    client.send('POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\nX-Up: 1\r\nHost: evil\r\n\r\n');
    expect(await client.until(/1\r\na\r\n0\r\nX-Sum: up\r\n\r\n$/)).not.toBeNull();
    client.destroy();
  });
});

test('a client reads the refusal of its request before the connection closes', async () => {
  await aloneBehind(
    echo(),
    async (balancer, replica) => {
      for (const [bytes, status, code] of [
        ['GET / HTTP/1.1\r\n\r\n', 400, 'bad_host'],
        ['\u0016\u0003\u0001', 400, 'bad_method'],
        ['PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', 400, 'bad_version'],
        ['TRACE / HTTP/1.1\r\nHost: a\r\n\r\n', 405, 'method_not_allowed'],
        ['POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2000\r\n\r\n', 413, 'body_too_large'],
        [`POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n7d0\r\n${'a'.repeat(2_000)}\r\n`, 413, 'body_too_large'],
        ['POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n', 400, 'bad_chunk'],
        [`GET /${'a'.repeat(9_000)} HTTP/1.1\r\n`, 414, 'line_too_long'],
        ['GET / HTTP/1.1\r\nHost: a\r\nExpect: x\r\n\r\n', 417, 'bad_expectation'],
        [`GET / HTTP/1.1\r\nHost: a\r\nA: ${'b'.repeat(33_000)}\r\n\r\n`, 431, 'head_too_large'],
        ['POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip\r\n\r\n', 501, 'unknown_transfer_coding'],
      ] as const) {
        const { received, ended } = await rawExchange(balancer.port, bytes);
        expect({ code, first: received.slice(0, 12), ended }).toEqual({ code, first: `HTTP/1.1 ${status}`, ended: 'end' });
        expect(received).toContain(`X-Svc-Reason: ${code}\r\n`);
        expect(JSON.parse(received.slice(received.indexOf('\r\n\r\n') + 4))).toMatchObject({
          error: { code, type: 'invalid_request_error' },
        });
      }
      expect(replica.accepted()).toBeLessThanOrEqual(2);
      await balancer.link.idle();
    },
    { maxBodyBytes: 1_000 },
  );
});

test('a request after a refused one on the same connection is ignored', async () => {
  let seen = 0;
  const replica = httpReplica((_, response) => {
    seen += 1;
    response.end();
  });
  await behind(replica, async (balancer) => {
    const { received } = await rawExchange(
      balancer.port,
      `POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n${get}`,
    );
    expect(received.match(/HTTP\/1\.1/g)).toHaveLength(1);
    expect(seen).toBe(0);
  });
});

test('each event of a stream is sent on its own as it arrives', async () => {
  let send: ((event: string) => void) | undefined;
  const replica = httpReplica((_, response) => {
    response.writeHead(200, { 'Content-Type': 'text/event-stream' });
    response.flushHeaders();
    send = (event) => response.write(event);
  });
  await behind(replica, async (balancer) => {
    const client = new RawClient(balancer.port).send(get);
    await client.until(/\r\n\r\n/);
    for (let event = 1; event <= 20; event += 1) {
      send?.(`data: ${event}\n\n`);
      // The next event is sent only after this one arrived, so the balancer must not hold any back to send together.
      await client.until(new RegExp(`data: ${event}\\n\\n\\r\\n$`));
    }
    expect(client.received.match(/data: /g)).toHaveLength(20);
    client.destroy();
  });
});
