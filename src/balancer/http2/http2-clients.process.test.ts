import { setTimeout as sleep } from 'node:timers/promises';
import type { RequestListener, ServerResponse } from 'node:http';
import { constants } from 'node:http2';
import { expect, test } from 'vitest';
import { aBalancerReplica } from '../../../test/support/balancer.ts';
import { Flag, frame, FrameClient, FrameType, requestFields } from '../../../test/support/http2-frames.ts';
import { withHttp2, type Http2Response } from '../../../test/support/http2.ts';
import { httpReplica, rawReplica, scriptedReplica, withReplicas, type FakeReplica } from '../../../test/support/raw-http.ts';
import { withTlsBalancer } from '../../../test/support/tls-files.ts';
import { waitFor } from '../../../test/support/wait-for.ts';

const noReplica: FakeReplica = { port: 0, connections: new Set(), accepted: () => 0, close: () => Promise.resolve() };

/** A replica that returns its request: the method, the target and the fields. */
const echoReplica = (): Promise<FakeReplica> => httpReplica(echoRequest);

const echoRequest: RequestListener = (request, response) => {
  let body = '';
  request.on('data', (chunk: Buffer) => {
    body += chunk.toString();
  });
  request.on('end', () => {
    response.setHeader('content-type', 'application/json');
    response.end(
      JSON.stringify({ method: request.method, url: request.url, fields: request.rawHeaders, trailers: request.rawTrailers, body }),
    );
  });
};

interface Echo {
  readonly method: string;
  readonly url: string;
  readonly fields: readonly string[];
  readonly trailers: readonly string[];
  readonly body: string;
}

function echoed(body: Buffer): Echo & { readonly field: (name: string) => readonly string[] } {
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- what the replica above says
  const echo = JSON.parse(body.toString()) as Echo;
  const field = (name: string): string[] =>
    echo.fields.filter((_, index) => index % 2 === 1 && echo.fields[index - 1]?.toLowerCase() === name);
  return { ...echo, field };
}

test('an HTTP/2 request reaches an HTTP/1.1 replica canonically, and the answer returns', async () => {
  await withReplicas([echoReplica()], async (replica) => {
    await withTlsBalancer([replica?.port ?? 0], async (balancer, url) => {
      await withHttp2(url, async (client) => {
        const response = await client.post('/v1/x?y=1', 'hello', {
          ':authority': 'api.example:8443',
          'x-request-id': 'abc',
          'x-forwarded-for': '6.6.6.6',
          'x-twice': ['1', '2'],
          cookie: ['a=1', 'b=2'],
          te: 'trailers',
        });
        expect(response.status).toBe(200);
        expect(response.headers['x-request-id']).toBe('abc');
        expect(response.headers['connection']).toBeUndefined();
        expect(response.code).toBe(0);
        const got = echoed(response.body);
        expect([got.method, got.url, got.body]).toEqual(['POST', '/v1/x?y=1', 'hello']);
        expect(got.field('host')).toEqual(['api.example:8443']);
        expect(got.field('x-twice')).toEqual(['1', '2']);
        expect(got.field('cookie')).toEqual(['a=1; b=2']);
        expect(got.field('x-forwarded-for')).toEqual(['127.0.0.1']);
        expect(got.field('x-forwarded-proto')).toEqual(['https']);
        expect(got.field('x-forwarded-host')).toEqual(['api.example:8443']);
        expect(got.field('transfer-encoding')).toEqual(['chunked']);
        expect(got.field('te')).toEqual(['trailers']);
        const get = await client.get('/');
        expect(echoed(get.body).field('transfer-encoding')).toEqual([]);
        const sized = await client.post('/', 'hello', { 'content-length': 5 });
        expect(echoed(sized.body).field('content-length')).toEqual(['5']);
      });
      const lines = await balancer.accessLog(3);
      expect(lines.map((line) => [line['status'], line['outcome']])).toEqual([
        [200, 'ok'],
        [200, 'ok'],
        [200, 'ok'],
      ]);
    });
  });
});

test('HEAD, bodiless statuses, interim answers and trailers equal those over HTTP/1.1', async () => {
  const answers: Readonly<Record<string, string>> = {
    HEAD: 'HTTP/1.1 200 OK\r\nContent-Length: 12\r\nX-A: 1\r\n\r\n',
    '/204': 'HTTP/1.1 204 No Content\r\nX-A: 1\r\n\r\n',
    '/304': 'HTTP/1.1 304 Not Modified\r\nETag: "x"\r\nContent-Length: 12\r\n\r\n',
    '/205': 'HTTP/1.1 205 Reset Content\r\nContent-Length: 2\r\n\r\nhi',
    '/103': 'HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi',
    '/trailers': 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\nX-Sum: 1\r\nContent-Length: 9\r\nX-Sum: 2\r\n\r\n',
    '/close': 'HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nhi',
    '/twice': 'HTTP/1.1 200 OK\r\nContent-Length: 0\r\nSet-Cookie: a=1\r\nSet-Cookie: b=2\r\nETag: "x"\r\nX-Latin: \u00e9\r\n\r\n',
  };
  const replica = rawReplica((socket, received) => {
    const [method = '', path = ''] = received
      .slice(received.lastIndexOf('\r\n\r\n', received.length - 5) + 1)
      .trim()
      .split(' ');
    socket.write(answers[method] ?? answers[path] ?? '', 'latin1');
    if (path === '/close') socket.end();
  });
  await withReplicas([replica], async ({ port } = noReplica) => {
    await withTlsBalancer([port], async (_, url) => {
      const ask = (path: string, method = 'GET'): Promise<Http2Response> =>
        withHttp2(url, (client) => client.get(path, { ':method': method }));
      const head = await ask('/', 'HEAD');
      expect([head.status, head.headers['content-length'], head.headers['x-a'], head.body.length, head.code]).toEqual([
        200,
        '12',
        '1',
        0,
        0,
      ]);
      const empty = await ask('/204');
      expect([empty.status, empty.headers['x-a'], empty.body.length, empty.code]).toEqual([204, '1', 0, 0]);
      const same = await ask('/304');
      expect([same.status, same.headers.etag, same.headers['content-length'], same.code]).toEqual([304, '"x"', '12', 0]);
      const reset = await ask('/205');
      expect([reset.status, reset.body.length, reset.code]).toEqual([205, 0, 0]);
      const hinted = await ask('/103');
      expect([hinted.interims[0]?.[':status'], hinted.interims[0]?.['link'], hinted.body.toString()]).toEqual([103, '</a>', 'hi']);
      const trailed = await ask('/trailers');
      expect([trailed.body.toString(), trailed.trailers['x-sum'], trailed.trailers['content-length'], trailed.code]).toEqual([
        'hi',
        '1, 2',
        undefined,
        0,
      ]);
      const closed = await ask('/close');
      expect([closed.body.toString(), closed.headers['connection'], closed.headers['transfer-encoding'], closed.code]).toEqual([
        'hi',
        undefined,
        undefined,
        0,
      ]);
      const twice = await ask('/twice');
      expect([twice.headers['set-cookie'], twice.headers['x-latin']]).toEqual([['a=1', 'b=2'], '\u00e9']);
    });
  });
});

test.each([
  ['a forged name', { content_length: '5' }, 400, 'forged_field'],
  ['a host that is not the authority', { ':authority': 'a.example', host: 'b.example' }, 400, 'bad_host'],
  ['a fragment', { ':path': '/a#b' }, 400, 'bad_target'],
  ['a target that is too long', { ':path': `/${'a'.repeat(9_000)}` }, 414, 'line_too_long'],
  ['a head that is too large', { 'x-big': 'a'.repeat(34_000) }, 431, 'head_too_large'],
  ['too many fields', Object.fromEntries(Array.from({ length: 120 }, (_, index) => [`x-${index}`, '1'])), 431, 'too_many_fields'],
  ['an unknown expectation', { expect: 'x' }, 417, 'bad_expectation'],
  ['TRACE', { ':method': 'TRACE' }, 405, 'method_not_allowed'],
] as const)('a request with %s is refused as it is over HTTP/1.1', async (_, headers, status, code) => {
  await withReplicas([echoReplica()], async ({ port } = noReplica) => {
    await withTlsBalancer([port], async (balancer, url) => {
      await withHttp2(url, async (client) => {
        const refused = await client.get('/', headers);
        expect([refused.status, refused.headers['x-svc-reason'], refused.code]).toEqual([status, code, 0]);
        expect(JSON.parse(refused.body.toString())).toMatchObject({ error: { code } });
        expect((await client.get('/')).status).toBe(200);
      });
      expect((await balancer.accessLog(2)).map((line) => line['outcome'])).toEqual(['refused', 'ok']);
    });
  });
});

test('a broken response is reset, and an event stream first gets an event', async () => {
  const short = scriptedReplica('HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf', (socket) => socket.end());
  const events = 'data: 1\n\n';
  const head = 'HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n';
  const stream = scriptedReplica(`${head}${events.length.toString(16)}\r\n${events}\r\n`, (socket) => socket.end());
  await withReplicas([short, stream], async (first, second) => {
    await withTlsBalancer([first?.port ?? 0], async (balancer, url) => {
      await withHttp2(url, async (client) => {
        const cut = await client.get('/');
        expect([cut.status, cut.body.toString(), cut.code]).toEqual([200, 'half', constants.NGHTTP2_INTERNAL_ERROR]);
        await balancer.link.setReplicas([aBalancerReplica(second?.port ?? 0, 2)]);
        const broken = await client.get('/');
        expect(broken.body.toString()).toMatch(/^data: 1\n\nevent: error\ndata: \{.*replica_lost/);
        expect(broken.code).toBe(constants.NGHTTP2_INTERNAL_ERROR);
      });
      expect((await balancer.accessLog(2)).map((line) => line['outcome'])).toEqual(['truncated', 'truncated']);
      await balancer.link.idle();
    });
  });
});

test('a client that resets its stream at any point frees the replica', async () => {
  const hanging = httpReplica((request, response) => {
    if (request.url === '/middle') response.write('begun');
  });
  await withReplicas([hanging], async (replica) => {
    await withTlsBalancer([replica?.port ?? 0], async (balancer, url) => {
      await withHttp2(url, async (client) => {
        for (const path of ['/before', '/middle', '/upload']) {
          const call = client.call({ ':path': path, ':method': path === '/upload' ? 'POST' : 'GET' }, true);
          if (path === '/upload') call.stream.write('part');
          else call.stream.end();
          await waitFor('the request to arrive', () => replica?.connections.size === 1);
          if (path === '/middle') await waitFor('the first bytes', () => call.text === 'begun', { everyMs: 5 });
          call.stream.close(constants.NGHTTP2_CANCEL);
          await waitFor('the connection of the replica to be closed', () => replica?.connections.size === 0, { everyMs: 5 });
        }
      });
      await balancer.link.idle();
      expect((await balancer.accessLog(3)).map((line) => line['outcome'])).toEqual(['client_gone', 'client_gone', 'client_gone']);
    });
  });
});

test("a response before the request's end is whole, and stops the client", async () => {
  const eager = rawReplica((socket, received) => {
    if (received.includes('part')) socket.write('HTTP/1.1 413 Too Large\r\nContent-Length: 4\r\n\r\nstop', 'latin1');
  });
  await withReplicas([eager], async ({ port } = noReplica) => {
    await withTlsBalancer([port], async (_, url) => {
      await withHttp2(url, async (client) => {
        const call = client.call({ ':path': '/', ':method': 'POST' });
        call.stream.write('part');
        const response = await call.done;
        expect([response.status, response.body.toString(), response.code]).toEqual([413, 'stop', constants.NGHTTP2_NO_ERROR]);
      });
    });
  });
});

test('100 event streams on one connection run in parallel, each event alone', async () => {
  const streams: ServerResponse[] = [];
  const ticking = httpReplica((_, response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' }).flushHeaders();
    streams.push(response);
  });
  await withReplicas([ticking], async ({ port } = noReplica) => {
    await withTlsBalancer([port], async (_, url) => {
      await withHttp2(url, async (client) => {
        const calls = Array.from({ length: 100 }, () => client.call({ ':path': '/' }));
        for (const { stream } of calls) stream.end();
        await waitFor('all to begin', () => streams.length === calls.length && calls.every(({ status }) => status === 200));
        let expected = '';
        // Each is sent only after the previous one has arrived at all ends.
        for (let event = 1; event <= 10; event += 1) {
          for (const stream of streams) stream.write(`data: ${event}\n\n`);
          expected += `data: ${event}\n\n`;
          await waitFor(`event ${event}`, () => calls.every(({ text }) => text === expected), { everyMs: 5 });
        }
        for (const stream of streams) stream.end();
        const responses = await Promise.all(calls.map(({ done }) => done));
        expect(new Set(responses.map(({ body, code }) => `${code} ${body.toString()}`))).toEqual(new Set([`0 ${expected}`]));
      });
    });
  });
});

test('a client that does not read pauses its replica, not other streams', async () => {
  const size = 50_000_000;
  const big = httpReplica((request, response) => {
    response.end(request.url === '/big' ? Buffer.alloc(size) : 'small');
  });
  await withReplicas([big], async ({ port } = noReplica) => {
    await withTlsBalancer([port], async (balancer, url) => {
      await withHttp2(url, async (client) => {
        await client.get('/small');
        const before = balancer.memory();
        const call = client.call({ ':path': '/big' });
        call.stream.end();
        call.stream.pause();
        await waitFor('the head', () => call.status === 200);
        await sleep(1_000);
        expect((await client.get('/small')).body.toString()).toBe('small');
        expect(balancer.memory() - before).toBeLessThan(20_000_000);
        call.stream.resume();
        expect((await call.done).body.length).toBe(size);
      });
    });
  });
});

test('uploads to a blocked replica pause, do not count as a flood, and complete', async () => {
  const size = 8_000_000;
  const takes: (() => void)[] = [];
  const slow = httpReplica((request, response) => {
    let bytes = 0;
    takes.push(() => {
      request.on('data', (chunk: Buffer) => {
        bytes += chunk.length;
      });
      request.on('end', () => response.end(String(bytes)));
    });
  });
  await withReplicas([slow], async ({ port } = noReplica) => {
    await withTlsBalancer([port], async (_, url) => {
      await withHttp2(url, async (client) => {
        const calls = Array.from({ length: 3 }, () => client.call({ ':path': '/', ':method': 'POST' }));
        let written = 0;
        for (const { stream } of calls) stream.end(Buffer.alloc(size), () => (written += 1));
        await waitFor('the requests to arrive', () => takes.length === calls.length);
        // Longer than from one check for floods to the next but one.
        await sleep(1_500);
        expect([written, client.goaways]).toEqual([0, []]);
        for (const take of takes) take();
        const responses = await Promise.all(calls.map(({ done }) => done));
        expect(responses.map(({ body }) => body.toString())).toEqual(calls.map(() => String(size)));
      });
    });
  });
});

test('a balancer that stops sends GOAWAY, accepts no request, and finishes running ones', async () => {
  let finish: (() => void) | undefined;
  const slow = httpReplica((_, response) => {
    response.write('begun ');
    finish = () => response.end('done');
  });
  await withReplicas([slow], async ({ port } = noReplica) => {
    await withTlsBalancer([port], async (balancer, url) => {
      await withHttp2(url, async (client) => {
        const call = client.call({ ':path': '/' });
        call.stream.end();
        await waitFor('the first bytes', () => call.text !== '');
        balancer.signal('SIGTERM');
        await waitFor('GOAWAY', () => client.goaways.length > 0);
        expect(client.session.closed).toBe(true);
        finish?.();
        const response = await call.done;
        expect([response.body.toString(), response.code]).toEqual(['begun done', 0]);
        expect(await balancer.exited).toBe(0);
      });
    });
  });
});

test('a client that closes after its response is closed at once', async () => {
  await withReplicas([echoReplica()], async ({ port } = noReplica) => {
    await withTlsBalancer([port], async (balancer) => {
      const client = new FrameClient(balancer.port);
      client.send(frame(FrameType.headers, Flag.endHeaders | Flag.endStream, 1, requestFields()));
      await waitFor('the answer', () => client.of(FrameType.headers).length > 0);
      client.end();
      await client.closed();
      expect(client.of(FrameType.headers).length).toBe(1);
    });
  });
});

test('a connection without a request gets GOAWAY after its time limit', async () => {
  await withReplicas([echoReplica()], async ({ port } = noReplica) => {
    await withTlsBalancer(
      [port],
      async (_, url) => {
        await withHttp2(url, async (client) => {
          expect((await client.get('/')).status).toBe(200);
          await waitFor('the connection to be closed', () => client.isClosed);
          expect(client.goaways).toEqual([0]);
          expect(client.errors).toEqual([]);
        });
      },
      // A slow client needs its time until its first request.
      { keepAliveTimeoutMs: 5_000 },
    );
  });
});
