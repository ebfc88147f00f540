import { constants, type ServerHttp2Stream } from 'node:http2';
import { expect, test } from 'vitest';
import { aBalancerReplica, withBalancer, type RunningBalancer } from '../../../test/support/balancer.ts';
import { GrpcCall, grpcMessage, readGrpcMessages } from '../../../test/support/grpc.ts';
import { http2Replica, withHttp2, type Http2Replica, type Http2TestClient, type OnHttp2Stream } from '../../../test/support/http2.ts';
import { httpReplica, RawClient, rawExchange, rawReplica, withReplicas } from '../../../test/support/raw-http.ts';
import { withTlsBalancer } from '../../../test/support/tls-files.ts';
import { waitFor } from '../../../test/support/wait-for.ts';
import type { BalancerConfig } from '../../domain/balancer-link.ts';

/** Runs `use` with replicas that speak HTTP/2, a balancer for them that accepts HTTP/2 without TLS, and a client. */
async function withH2c(
  onStreams: readonly OnHttp2Stream[],
  use: (world: {
    readonly balancer: RunningBalancer;
    readonly client: Http2TestClient;
    readonly replicas: readonly Http2Replica[];
  }) => Promise<void>,
  changes: Partial<BalancerConfig> = {},
): Promise<void> {
  const replicas = await Promise.all(onStreams.map((onStream) => http2Replica(onStream)));
  try {
    await withBalancer(
      replicas.map(({ port }, index) => aBalancerReplica(port, index + 1)),
      (balancer) => withHttp2(balancer.url, (client) => use({ balancer, client, replicas })),
      { protocol: 'h2c', ...changes },
    );
  } finally {
    await Promise.all(replicas.map((replica) => replica.close()));
  }
}

/** A gRPC service with one method for each streaming mode. */
const grpcService: OnHttp2Stream = (stream, headers) => {
  const path = String(headers[':path']);
  if (path === '/nothing') {
    stream.respond(
      { ':status': 200, 'content-type': 'application/grpc', 'grpc-status': '12', 'grpc-message': 'no%20such' },
      { endStream: true },
    );
    return;
  }
  stream.respond(
    { ':status': 200, 'content-type': 'application/grpc', 'x-timeout': headers['grpc-timeout'] ?? '' },
    { waitForTrailers: true },
  );
  stream.on('wantTrailers', () => stream.sendTrailers({ 'grpc-status': path === '/fail' ? '9' : '0', 'x-end': ['1', '2'] }));
  let bytes = Buffer.alloc(0);
  let seen = 0;
  stream.on('data', (chunk: Buffer) => {
    bytes = Buffer.concat([bytes, chunk]);
    const messages = readGrpcMessages(bytes);
    for (const message of messages.slice(seen)) stream.write(grpcMessage(`echo ${message}`));
    seen = messages.length;
  });
  stream.on('end', () => stream.end());
};

/** Never answers, or dies. */
const hanging: OnHttp2Stream = (stream, headers) => {
  if (headers[':path'] === '/die') stream.session?.destroy();
};

/** Returns what it received. */
const echo: OnHttp2Stream = (stream, headers, raw) => {
  let body = '';
  stream.on('data', (chunk: Buffer) => {
    body += chunk.toString();
  });
  stream.on('end', () => {
    if (headers[':path'] === '/204') return stream.respond({ ':status': 204 }, { endStream: true });
    if (headers[':path'] === '/hint') stream.additionalHeaders({ ':status': 103, link: '</a>' });
    stream.respond({ ':status': 200, 'set-cookie': ['a=1', 'b=2'] }, { waitForTrailers: true });
    stream.on('wantTrailers', () => stream.sendTrailers({ 'x-sum': '1' }));
    stream.end(JSON.stringify({ raw, body }));
    return undefined;
  });
};

test('gRPC passes with trailers: unary calls, streams both ways, errors with and without body', async () => {
  await withH2c([grpcService], async ({ balancer, client }) => {
    const unary = await new GrpcCall(client, '/unary', { 'grpc-timeout': '30S' }).send('a').finish().result();
    expect([unary.status, unary.headers['x-timeout'], unary.headers['content-type']]).toEqual(['0', '30S', 'application/grpc']);
    const both = new GrpcCall(client, '/both');
    for (const count of [1, 2, 3]) {
      both.send(`m${count}`);
      await waitFor('the echo', () => both.messages.length === count, { everyMs: 2 });
    }
    expect(both.messages).toEqual(['echo m1', 'echo m2', 'echo m3']);
    const { status } = await both.finish().result();
    expect(status).toBe('0');
    expect((await both.call.done).trailers['x-end']).toBe('1, 2');
    expect(await new GrpcCall(client, '/nothing').finish().result()).toMatchObject({ status: '12', message: 'no%20such' });
    expect((await new GrpcCall(client, '/fail').send('a').finish().result()).status).toBe('9');
    const lines = await balancer.accessLog(4);
    expect(lines.map((line) => [line['status'], line['outcome'], line['replica']])).toEqual(
      Array.from({ length: 4 }, () => [200, 'ok', 1]),
    );
  });
});

test('gRPC over TLS goes to an HTTP/2 replica in HTTP/2, other requests in HTTP/1.1', async () => {
  const replica = await http2Replica(grpcService);
  try {
    await withTlsBalancer([replica.port], async (_, url) => {
      await withHttp2(url, async (client) => {
        for (let round = 0; round < 3; round += 1) {
          expect((await new GrpcCall(client, '/unary').send('a').finish().result()).status).toBe('0');
        }
        // Node's HTTP/2 server closes a connection that does not speak HTTP/2.
        expect((await client.get('/')).status).toBe(502);
      });
      expect(replica.accepted()).toBe(2);
      await waitFor('what is not HTTP/2 to be closed', () => replica.sessions.size === 1);
    });
  } finally {
    await replica.close();
  }
});

test('a replica found to speak only HTTP/1.1 gets gRPC in it without another test', async () => {
  const asked = new Set<unknown>();
  const old = rawReplica((socket, received) => {
    if (received.startsWith('PRI')) asked.add(socket);
    if (received.startsWith('PRI')) socket.end('HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n');
    else if (received.endsWith('0\r\n\r\n')) socket.write(`HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\n${received.slice(0, 4)}`);
  });
  await withReplicas([old], async (replica) => {
    await withTlsBalancer([replica?.port ?? 0], async (_, url) => {
      await withHttp2(url, async (client) => {
        for (let round = 0; round < 3; round += 1) {
          const call = new GrpcCall(client, '/unary').send('a').finish();
          expect((await call.call.done).body.toString()).toBe('POST');
        }
      });
      expect(asked.size).toBe(1);
    });
  });
});

test('a gRPC client gets own answers with a gRPC status', async () => {
  await withH2c(
    [hanging],
    async ({ balancer, client }) => {
      const lost = await new GrpcCall(client, '/die').send('a').finish().result();
      expect([lost.status, lost.headers[':status'], lost.headers['x-svc-reason']]).toEqual(['14', 200, 'replica_lost']);
      expect(lost.message).toContain('went away');
      expect((await new GrpcCall(client, '/hang').send('a').finish().result()).status).toBe('4');
      const big = await new GrpcCall(client, '/big').send('a'.repeat(2_000)).finish().result();
      expect([big.status, big.headers['content-type']]).toEqual(['8', 'application/grpc']);
      await balancer.link.setReplicas([]);
      expect((await new GrpcCall(client, '/none').send('a').finish().result()).status).toBe('14');
      expect((await balancer.accessLog(4)).map((line) => line['status'])).toEqual([502, 504, 413, 503]);
    },
    // Long enough for the balancer to handle a dead replica on a busy machine.
    { firstByteTimeoutMs: 3_000, maxBodyBytes: 1_000 },
  );
});

test('a replica that speaks HTTP/2 serves HTTP/1.1 clients', async () => {
  await withH2c([echo], async ({ balancer }) => {
    const request = 'POST /x HTTP/1.1\r\nHost: a.example\r\nConnection: close, X-Hop\r\nX-Hop: 1\r\nTE: trailers\r\n';
    const sent = await rawExchange(balancer.port, `${request}Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n`);
    expect(sent.received).toMatch(/^HTTP\/1\.1 200 \r\n/);
    expect(sent.received).toContain('set-cookie: a=1\r\nset-cookie: b=2\r\n');
    expect(sent.received).toContain('Transfer-Encoding: chunked\r\n');
    expect(sent.received).toMatch(/\r\n0\r\nx-sum: 1\r\n\r\n$/);
    const text = /\{.*\}/.exec(sent.received)?.[0] ?? '';
    for (const part of ['":method","POST"', '":path","/x"', '":authority","a.example"', '"te","trailers"', '"body":"abc"'])
      expect(text).toContain(part);
    for (const part of ['x-hop', 'transfer-encoding', '"connection"', '"host"']) expect(text).not.toContain(part);
    const hinted = await rawExchange(balancer.port, 'GET /hint HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n');
    expect(hinted.received).toMatch(/^HTTP\/1\.1 103 \r\nlink: <\/a>\r\n\r\nHTTP\/1\.1 200 /);
    const old = await rawExchange(balancer.port, 'GET / HTTP/1.0\r\n\r\n');
    expect(old.received).toMatch(/^HTTP\/1\.1 200 [^]*\r\n\r\n\{[^]*\}$/);
    const head = await rawExchange(balancer.port, 'HEAD / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n');
    expect(head.received).toMatch(/^HTTP\/1\.1 200 [^]*\r\n\r\n$/);
    const none = await rawExchange(balancer.port, 'GET /204 HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n');
    expect(none.received).toMatch(/^HTTP\/1\.1 204 /);
    expect((await balancer.accessLog(5)).map((line) => line['outcome'])).toEqual(Array.from({ length: 5 }, () => 'ok'));
  });
});

test('trailers may have names that every object has, in both directions', async () => {
  const names = ['constructor', '__proto__', 'toString'];
  const trailersSeen: string[][] = [];
  const recordTrailers: OnHttp2Stream = (stream) => {
    stream.on('trailers', (_headers, _flags, raw: string[]) => trailersSeen.push(raw));
    echo(stream, {}, []);
  };
  await withH2c([recordTrailers], async ({ balancer }) => {
    const trailers = names.map((name) => `${name}: 1\r\n`).join('');
    const request = `POST / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n${trailers}\r\n`;
    const { received } = await rawExchange(balancer.port, request);
    expect(received).toMatch(/^HTTP\/1\.1 200 [^]*\r\nx-sum: 1\r\n\r\n$/);
    expect(trailersSeen).toEqual([names.flatMap((name) => [name.toLowerCase(), '1'])]);
  });
  const fields = names.map((name) => `${name}: 1\r\n`).join('');
  const answer = `HTTP/1.1 103 Early Hints\r\n${fields}\r\nHTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n${fields}\r\n`;
  await withReplicas([rawReplica((socket) => socket.write(answer))], async (replica) => {
    await withTlsBalancer([replica?.port ?? 0], async (_, url) => {
      const response = await withHttp2(url, (client) => client.get('/'));
      expect([response.status, response.body.toString(), response.code]).toEqual([200, 'hi', 0]);
      expect(Object.keys(response.trailers)).toEqual(expect.arrayContaining(['constructor', 'tostring']));
    });
  });
});

test('any request that the replica refused or left unprocessed at GOAWAY is retried', async () => {
  let streams = 0;
  const moody: OnHttp2Stream = (stream) => {
    streams += 1;
    if (streams === 2) return stream.session?.goaway(constants.NGHTTP2_NO_ERROR, (stream.id ?? 0) - 2);
    if (streams === 4) return stream.close(constants.NGHTTP2_REFUSED_STREAM);
    stream.respond({ ':status': 200 });
    return stream.end('served');
  };
  await withH2c([moody], async ({ balancer, client }) => {
    for (let round = 0; round < 3; round += 1) {
      const response = await client.post('/', 'x');
      expect([response.status, response.body.toString()]).toEqual([200, 'served']);
    }
    expect(streams).toBe(5);
    expect((await balancer.accessLog(3)).map((line) => line['attempts'])).toEqual([1, 2, 2]);
    expect(balancer.link.of('suspect')).toEqual([]);
  });
});

test('a lost request is retried only when it may run twice', async () => {
  let streams = 0;
  const dying: OnHttp2Stream = (stream) => {
    streams += 1;
    if (streams % 2 === 1) return stream.session?.destroy();
    stream.respond({ ':status': 200 });
    return stream.end('served');
  };
  await withH2c([dying, dying], async ({ client }) => {
    expect((await client.post('/', 'x')).status).toBe(502);
    streams = 0;
    expect((await client.get('/')).status).toBe(200);
  });
});

test.each([
  ['with an error', (stream: ServerHttp2Stream) => stream.close(constants.NGHTTP2_INTERNAL_ERROR)],
  ['without one', (stream: ServerHttp2Stream) => stream.close(constants.NGHTTP2_NO_ERROR)],
  ['by the end of its connection', (stream: ServerHttp2Stream) => stream.session?.destroy()],
])('a response that the replica resets %s is cut off, never ended properly', async (_, reset) => {
  const cut: OnHttp2Stream = (stream) => {
    stream.respond({ ':status': 200 }, { waitForTrailers: true });
    stream.write('part', () => setTimeout(() => reset(stream), 100));
  };
  await withH2c([cut], async ({ balancer, client }) => {
    const response = await client.get('/');
    expect([response.body.toString(), response.code]).toEqual(['part', constants.NGHTTP2_INTERNAL_ERROR]);
    const over1 = new RawClient(balancer.port).send('GET / HTTP/1.1\r\nHost: a\r\n\r\n');
    await over1.closed();
    expect(over1.received).toContain('part');
    expect(over1.received).not.toContain('\r\n0\r\n');
    expect((await balancer.accessLog(2)).map((line) => line['outcome'])).toEqual(['truncated', 'truncated']);
  });
});

test('a disconnect resets only its own stream, and half a body never looks whole', async () => {
  const seen: string[] = [];
  const watching: OnHttp2Stream = (stream, headers) => {
    stream.on('data', () => undefined);
    stream.on('end', () => seen.push(stream.closed ? 'cut' : 'whole'));
    stream.on('close', () => seen.push(`${String(headers[':path'])} ${stream.rstCode}`));
    if (headers[':path'] === '/stay') stream.respond({ ':status': 200 });
  };
  await withH2c([watching], async ({ balancer, client, replicas }) => {
    const stay = client.call({ ':path': '/stay', ':method': 'POST' });
    await waitFor('the first', () => stay.status === 200);
    const leave = client.call({ ':path': '/leave', ':method': 'POST' }, true);
    leave.stream.write('half');
    await waitFor('two streams', () => balancer.link.lastStats?.inFlight['1'] === 2);
    leave.stream.close(constants.NGHTTP2_CANCEL);
    await waitFor('the reset', () => seen.includes(`/leave ${constants.NGHTTP2_CANCEL}`), { everyMs: 5 });
    expect(seen).not.toContain('whole');
    expect(seen.some((line) => line.startsWith('/stay'))).toBe(false);
    expect(replicas[0]?.accepted()).toBe(1);
  });
});

test('requests share one connection up to the limit of the replica', async () => {
  const waiting = new Set<ServerHttp2Stream>();
  const requests = 60;
  let most = 0;
  const counting: OnHttp2Stream = (stream) => {
    waiting.add(stream);
    most = Math.max(most, waiting.size);
    if (most < requests) return;
    for (const one of waiting) {
      one.respond({ ':status': 200 });
      one.end('ok');
    }
    waiting.clear();
  };
  const replica = await http2Replica(counting, { settings: { maxConcurrentStreams: 10 } });
  try {
    await withBalancer(
      [aBalancerReplica(replica.port)],
      async (balancer) => {
        await withHttp2(balancer.url, async (client) => {
          const responses = await Promise.all(Array.from({ length: requests }, () => client.post('/', 'x')));
          expect(new Set(responses.map((response) => response.status))).toEqual(new Set([200]));
          await client.get('/');
        });
        expect(replica.accepted()).toBeGreaterThanOrEqual(6);
        expect(replica.accepted()).toBeLessThanOrEqual(7);
      },
      { protocol: 'h2c' },
    );
  } finally {
    await replica.close();
  }
});

test('a replica without the configured HTTP/2 gives 503 and a report', async () => {
  await withReplicas([httpReplica((_, response) => response.end('old'))], async (replica) => {
    await withBalancer(
      [aBalancerReplica(replica?.port ?? 0)],
      async (balancer) => {
        const { received } = await rawExchange(balancer.port, 'GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n');
        expect(received).toMatch(/^HTTP\/1\.1 503 /);
        await waitFor('the report', () => balancer.link.of('suspect').length > 0);
      },
      { protocol: 'h2c', queue: { maxRequests: 10, maxBytes: 1_000_000, timeoutMs: 300, fromZero: false } },
    );
  });
});

test('a session with an unanswered request gets no more until the replica sends bytes', async () => {
  let silent = 0;
  const stuck: OnHttp2Stream = (stream, headers) => {
    if (headers[':path'] === '/hang') {
      silent += 1;
      return;
    }
    stream.respond({ ':status': 200 });
    stream.end('ok');
  };
  await withH2c(
    [stuck],
    async ({ client, replicas }) => {
      expect((await client.get('/')).status).toBe(200);
      expect((await client.get('/hang')).status).toBe(504);
      expect(silent).toBe(1);
      expect((await client.get('/')).status).toBe(200);
      expect(replicas[0]?.accepted()).toBe(2);
    },
    // Long enough for those that are answered, on a busy machine.
    { firstByteTimeoutMs: 3_000 },
  );
});

test('a draining replica keeps its streams, and its connection closes after the last', async () => {
  let finish: (() => void) | undefined;
  const slow: OnHttp2Stream = (stream) => {
    stream.respond({ ':status': 200 });
    stream.write('begun ');
    finish = () => stream.end('done');
  };
  await withH2c([slow], async ({ balancer, client, replicas }) => {
    const call = client.call({ ':path': '/' });
    call.stream.end();
    await waitFor('the first bytes', () => call.text !== '');
    await balancer.link.setReplicas([aBalancerReplica(replicas[0]?.port ?? 0, 1, { state: 'draining' })]);
    finish?.();
    expect((await call.done).body.toString()).toBe('begun done');
    await waitFor('the connection to be closed', () => replicas[0]?.sessions.size === 0);
  });
});
