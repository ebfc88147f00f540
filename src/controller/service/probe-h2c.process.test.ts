import { createServer as createHttp1Server } from 'node:http';
import { createServer, type Http2Server, type ServerHttp2Session, type ServerHttp2Stream } from 'node:http2';
import { createServer as createTcpServer, type Server } from 'node:net';
import { afterEach, expect, test } from 'vitest';
import { aServiceSpec } from '../../../test/support/builders.ts';
import { grpcHealthPath } from '../../domain/replica/probe.ts';
import type { ReadinessProbe } from '../../domain/task.ts';
import { systemClock } from '../../shared/clock.ts';
import { probeReplica, type ProbeAnswer } from './probe-request.ts';

const { readinessProbe } = aServiceSpec();
const open: (() => void)[] = [];
afterEach(() => {
  for (const close of open.splice(0)) close();
});

async function listen(server: Server | Http2Server): Promise<number> {
  const sessions = new Set<ServerHttp2Session>();
  server.on('session', (session: ServerHttp2Session) => sessions.add(session));
  open.push(() => {
    for (const session of sessions) session.destroy();
    server.close();
  });
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve);
  });
  const address = server.address();
  if (typeof address !== 'object' || address === null) throw new Error('not listening');
  return address.port;
}

type Headers = Readonly<Record<string, string | string[] | undefined>>;

/** Starts a server of HTTP/2 without TLS. Returns its port. */
function h2c(onStream: (stream: ServerHttp2Stream, headers: Headers) => void): Promise<number> {
  const server = createServer();
  server.on('stream', onStream);
  return listen(server);
}

const probe = (port: number, change: Partial<ReadinessProbe> = {}): Promise<ProbeAnswer> =>
  probeReplica(
    { kind: 'tcp', host: '127.0.0.1', port },
    { readinessProbe: { ...readinessProbe, path: '/ready', timeoutSeconds: 5, ...change }, protocol: 'h2c' },
    systemClock,
    new AbortController().signal,
  );

/** Answers like a gRPC server: a message, and a status in the trailers. */
const grpcServer = (message: readonly number[], status: string): Promise<number> =>
  h2c((stream) => {
    stream.respond({ ':status': 200, 'content-type': 'application/grpc' }, { waitForTrailers: true });
    stream.on('wantTrailers', () => stream.sendTrailers({ 'grpc-status': status }));
    stream.end(Buffer.from(message));
  });

test('only status 200 means ready', async () => {
  for (const status of [200, 204, 404, 503]) {
    const port = await h2c((stream) => {
      stream.respond({ ':status': status });
      stream.end();
    });
    expect(await probe(port)).toEqual({ passed: status === 200, detail: `/ready answered ${status}` });
  }
});

test('the probe sends its headers, and a JSON POST when there is data', async () => {
  let seen: Record<string, unknown> = {};
  const port = await h2c((stream, headers) => {
    let body = '';
    stream.on('data', (piece: Buffer) => (body += piece.toString()));
    stream.on('end', () => {
      seen = { method: headers[':method'], path: headers[':path'], host: headers[':authority'], key: headers['authorization'], body };
      stream.respond({ ':status': 200 });
      stream.end('ok');
    });
  });
  const answer = await probe(port, { headers: { Authorization: 'Bearer k', Host: 'model' }, postData: '{"a":1}' });
  expect(answer.passed).toBe(true);
  expect(seen).toEqual({ method: 'POST', path: '/ready', host: 'model', key: 'Bearer k', body: '{"a":1}' });
});

test('the gRPC health check sends a valid gRPC request', async () => {
  let seen: unknown;
  const port = await h2c((stream, headers) => {
    const pieces: Buffer[] = [];
    stream.on('data', (piece: Buffer) => pieces.push(piece));
    stream.on('end', () => {
      seen = [headers[':method'], headers[':path'], headers['content-type'], headers['te'], Buffer.concat(pieces).toString('hex')];
      stream.respond({ ':status': 200, 'grpc-status': '0' }, { endStream: true });
    });
  });
  await probe(port, { path: grpcHealthPath });
  expect(seen).toEqual(['POST', grpcHealthPath, 'application/grpc', 'trailers', '0000000000']);
});

test.each([
  ['SERVING', [0, 0, 0, 0, 2, 8, 1], '0', true, 'SERVING'],
  ['NOT_SERVING', [0, 0, 0, 0, 2, 8, 2], '0', false, 'NOT_SERVING'],
  ['no health service', [], '12', false, 'gRPC status 12, UNIMPLEMENTED (the program has no health service)'],
])('the health status of a gRPC server is read: %s', async (_about, message, status, passed, said) => {
  const port = await grpcServer(message, status);
  expect(await probe(port, { path: grpcHealthPath })).toEqual({ passed, detail: `${grpcHealthPath} answered ${said}` });
});

test('a status in the headers is read; a non-gRPC answer is reported', async () => {
  const refusing = await h2c((stream) => stream.respond({ ':status': 200, 'grpc-status': '14' }, { endStream: true }));
  expect((await probe(refusing, { path: grpcHealthPath })).detail).toBe(`${grpcHealthPath} answered gRPC status 14, UNAVAILABLE`);
  const other = await h2c((stream) => stream.respond({ ':status': 404 }, { endStream: true }));
  expect((await probe(other, { path: grpcHealthPath })).detail).toBe(`${grpcHealthPath} answered 404, which is no answer of gRPC`);
});

test('HTTP/1.1, closed connections, silence and endless answers are not ready', async () => {
  const http1 = await listen(createHttp1Server((_request, response) => response.end()));
  const closing = await listen(createTcpServer((socket) => socket.destroy()));
  const silent = await listen(createTcpServer(() => undefined));
  const endless = await h2c((stream) => {
    stream.on('error', () => undefined);
    stream.respond({ ':status': 200, 'content-type': 'application/grpc' });
    stream.write(Buffer.alloc(4_096));
  });
  const [first, second, third, fourth] = await Promise.all([
    probe(http1),
    probe(closing),
    probe(silent, { timeoutSeconds: 0.1 }),
    probe(endless, { path: grpcHealthPath }),
  ]);
  expect([first.passed, second.passed, third, fourth.passed]).toEqual([
    false,
    false,
    { passed: false, detail: '/ready did not answer within 0.1 s', isUnanswered: true },
    false,
  ]);
  expect(first.detail).toContain('(protocol: h2c expects HTTP/2 without TLS)');
});
