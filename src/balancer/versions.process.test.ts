import { request as requestHttp, type IncomingHttpHeaders } from 'node:http';
import { expect, test } from 'vitest';
import { aBalancerReplica, balancerConfig, RunningBalancer, withBalancer } from '../../test/support/balancer.ts';
import { GrpcCall, grpcMessage } from '../../test/support/grpc.ts';
import { http2Replica, withHttp2 } from '../../test/support/http2.ts';
import { httpReplica, refusingPort, scriptedReplica, withReplicas, type FakeReplica } from '../../test/support/raw-http.ts';
import { withTempHome } from '../../test/support/temp-home.ts';
import { withTlsBalancer } from '../../test/support/tls-files.ts';
import { Traffic, tally } from '../../test/support/traffic.ts';
import { waitFor } from '../../test/support/wait-for.ts';
import type { BalancerReplica } from '../domain/balancer-link.ts';
import type { Outcomes } from '../domain/outcomes.ts';

/** Answers with the `x-svc-version` that it got; below /own it names a version itself. */
const echo = (count: () => void = () => undefined): Promise<FakeReplica> =>
  httpReplica((request, response) => {
    count();
    if (request.url === '/own') response.setHeader('X-Svc-Version', 'mine');
    response.statusCode = request.url === '/bad' ? 500 : 200;
    response.end(String(request.headers['x-svc-version']));
  });

/** Replica `id`, of version `id`. */
const versioned = (replicas: readonly FakeReplica[], ...shares: readonly number[]): BalancerReplica[] =>
  replicas.map(({ port }, index) => aBalancerReplica(port, index + 1, { version: index + 1, share: shares[index] ?? 0 }));

async function get(
  port: number,
  path = '/',
  headers: Readonly<Record<string, string>> = {},
): Promise<{ readonly version: IncomingHttpHeaders[string]; readonly body: string; readonly status: number | undefined }> {
  return new Promise((resolve, reject) => {
    const sent = requestHttp({ port, host: '127.0.0.1', path, headers, agent: false }, (response) => {
      let body = '';
      response.on('data', (bytes: Buffer) => (body += bytes.toString()));
      response.on('end', () => resolve({ version: response.headers['x-svc-version'], body, status: response.statusCode }));
    });
    sent.on('error', reject).end();
  });
}

const outcomesOf = ({ link }: RunningBalancer): Outcomes => link.lastStats?.outcomes ?? {};

test('requests over several threads are split exactly, and follow changed shares', async () => {
  const counts = [0, 0];
  const count = (index: number) => () => void (counts[index] = (counts[index] ?? 0) + 1);
  await withReplicas([echo(count(0)), echo(count(1))], async (...replicas) => {
    await withBalancer(
      [],
      async (balancer) => {
        const traffic = new Traffic(balancer.url, 24);
        for (const share of [0.05, 0.25, 0.5]) {
          counts.fill(0);
          await balancer.link.setReplicas(versioned(replicas, 1 - share, share));
          await traffic.sendMany(1_000, 24, () => ({}));
          expect(Math.abs((counts[1] ?? 0) - share * 1_000)).toBeLessThanOrEqual(3);
        }
        traffic.close();
        expect(tally(traffic.outcomes)).toEqual({ 'GET 200': 3_000 });
      },
      { threads: 3 },
    );
  });
});

test('a pin chooses the version, reaches the program unchanged, and the response names the version', async () => {
  await withReplicas([echo(), echo()], async (...replicas) => {
    await withBalancer(versioned(replicas, 1, 0), async ({ port, link }) => {
      expect(await get(port)).toEqual({ version: '1', body: 'undefined', status: 200 });
      expect(await get(port, '/', { 'x-svc-version': '2' })).toEqual({ version: '2', body: '2', status: 200 });
      expect(await get(port, '/', { 'x-svc-version': '7' })).toEqual({ version: '1', body: '7', status: 200 });
      expect(await get(port, '/own')).toMatchObject({ version: 'mine' });
      const [one] = replicas;
      await link.setReplicas([aBalancerReplica(one?.port ?? 0, 1, { version: 1 })]);
      expect(await get(port)).toMatchObject({ version: undefined });
    });
  });
});

test('a session keeps its version over all threads', async () => {
  await withReplicas([echo(), echo()], async (...replicas) => {
    await withBalancer(
      versioned(replicas, 0.5, 0.5),
      async ({ port }) => {
        const seen = new Set<unknown>();
        for (let user = 0; user < 12; user += 1) {
          const replies = await Promise.all(Array.from({ length: 8 }, () => get(port, '/', { 'X-User': `user${user}` })));
          const versions = new Set(replies.map(({ version }) => version));
          expect(versions.size).toBe(1);
          seen.add([...versions][0]);
        }
        expect(seen).toEqual(new Set(['1', '2']));
      },
      { threads: 2, session: { header: 'x-user' } },
    );
  });
});

test('a version that refuses connections loses no request, and its failures are counted', async () => {
  await withReplicas([echo()], async (one) => {
    const refusing = aBalancerReplica(await refusingPort(), 2, { version: 2, share: 0.5 });
    await withBalancer([...versioned(one === undefined ? [] : [one], 0.5), refusing], async (balancer) => {
      const traffic = new Traffic(balancer.url);
      await traffic.sendMany(200, 4, (index) => ({ method: index % 2 === 0 ? 'GET' : 'POST' }));
      traffic.close();
      expect(tally(traffic.outcomes)).toEqual({ 'GET 200': 100, 'POST 200': 100 });
      await waitFor('all outcomes', () => outcomesOf(balancer)['1']?.responses === 200);
      const { responses = 0, errors, firstByteCounts } = outcomesOf(balancer)['2'] ?? {};
      expect(responses).toBeGreaterThan(0);
      expect([errors, firstByteCounts?.every((count) => count === 0)]).toEqual([responses, true]);
    });
  });
});

test('outcomes: 5xx and cut responses are errors, 4xx are not', async () => {
  const cut = scriptedReplica('HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf', (socket) => socket.resetAndDestroy());
  const missing = scriptedReplica('HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n');
  await withReplicas([echo(), cut, missing], async (...replicas) => {
    await withBalancer(versioned(replicas, 1, 0, 0), async (balancer) => {
      await get(balancer.port, '/bad');
      await get(balancer.port, '/good');
      await get(balancer.port, '/', { 'x-svc-version': '2' }).catch(() => undefined);
      await get(balancer.port, '/', { 'x-svc-version': '3' });
      const seen = await waitFor('outcomes', () => (Object.keys(outcomesOf(balancer)).length === 3 ? outcomesOf(balancer) : undefined));
      expect([seen['1'], seen['2'], seen['3']]).toMatchObject([
        { responses: 2, errors: 1 },
        { responses: 1, errors: 1 },
        { responses: 1, errors: 0 },
      ]);
      for (const { responses, firstByteCounts } of Object.values(seen)) {
        expect(firstByteCounts.reduce((sum, count) => sum + count, 0)).toBe(responses);
      }
    });
  });
});

test('requests that hang at a version are counted by their age before they end', async () => {
  const silent = scriptedReplica('');
  await withReplicas([echo(), silent], async (...replicas) => {
    await withBalancer(versioned(replicas, 1, 0), async (balancer) => {
      await get(balancer.port);
      const left = new AbortController();
      const hanging = Array.from({ length: 3 }, () =>
        fetch(balancer.url, { headers: { 'x-svc-version': '2' }, signal: left.signal }).catch(() => undefined),
      );
      const counts = await waitFor('waits', () =>
        outcomesOf(balancer)['2']?.waitCounts?.[1] === 3 ? outcomesOf(balancer)['2'] : undefined,
      );
      expect(counts).toMatchObject({ responses: 0, errors: 0 });
      expect(outcomesOf(balancer)['1']?.waitCounts?.every((count) => count === 0)).toBe(true);
      left.abort();
      await Promise.all(hanging);
    });
  });
});

test('a restarted balancer keeps the split without a reconciler, and counts outcomes from zero', async () => {
  await withReplicas([echo(), echo()], async (...replicas) => {
    await withTempHome(async (dir) => {
      const config = balancerConfig(dir);
      const first = await RunningBalancer.start(config);
      try {
        await first.link.setReplicas(versioned(replicas, 1, 0));
        for (let turn = 0; turn < 20; turn += 1) await get(first.port);
        await waitFor('outcomes', () => outcomesOf(first)['1']?.responses === 20);
      } finally {
        await first.stop();
      }
      const second = await RunningBalancer.start(config);
      try {
        for (let turn = 0; turn < 10; turn += 1) expect(await get(second.port)).toMatchObject({ version: '1' });
        await waitFor('outcomes', () => outcomesOf(second)['1']?.responses === 10);
        expect(outcomesOf(second)['2']).toBeUndefined();
      } finally {
        await second.stop();
      }
    });
  });
});

test('pin, session and the version in the response work with HTTP/2 clients', async () => {
  await withReplicas([echo(), echo()], async (...replicas) => {
    await withTlsBalancer(
      [],
      async (balancer, url) => {
        await balancer.link.setReplicas(versioned(replicas, 0.5, 0.5));
        await withHttp2(url, async (client) => {
          for (const version of ['1', '2', '1']) {
            const { headers, body } = await client.get('/', { 'x-svc-version': version });
            expect([headers['x-svc-version'], body.toString()]).toEqual([version, version]);
          }
          const replies = await Promise.all(Array.from({ length: 20 }, () => client.get('/', { cookie: ['a=1', 'sid=7'] })));
          expect(new Set(replies.map(({ headers }) => headers['x-svc-version'])).size).toBe(1);
        });
      },
      { session: { cookie: 'sid' } },
    );
  });
});

/** A gRPC program; without a status it ends its responses like one that crashes. */
const answering = (status: string | undefined) =>
  http2Replica((stream) => {
    stream.respond({ ':status': 200, 'content-type': 'application/grpc' }, { waitForTrailers: status !== undefined });
    if (status !== undefined) stream.once('wantTrailers', () => stream.sendTrailers({ 'grpc-status': status }));
    stream.end(grpcMessage('hello'));
  });

test('a gRPC response names the version; one without a status is an error of it', async () => {
  await withReplicas([answering('0'), answering(undefined)], async (...replicas) => {
    await withBalancer(
      versioned(replicas, 1, 0),
      async (balancer) => {
        await withHttp2(balancer.url, async (client) => {
          const good = await new GrpcCall(client, '/s/m').send('x').finish().result();
          expect([good.status, good.headers['x-svc-version']]).toEqual(['0', '1']);
          await new GrpcCall(client, '/s/m', { 'x-svc-version': '2' })
            .send('x')
            .finish()
            .result()
            .catch(() => undefined);
        });
        await waitFor('outcomes', () => outcomesOf(balancer)['2']?.errors === 1);
        expect(outcomesOf(balancer)['1']).toMatchObject({ responses: 1, errors: 0 });
      },
      { protocol: 'h2c' },
    );
  });
});
