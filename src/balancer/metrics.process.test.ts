import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { aBalancerReplica, withBalancer } from '../../test/support/balancer.ts';
import { httpReplica, rawExchange, refusingPort, withReplicas } from '../../test/support/raw-http.ts';
import { waitFor } from '../../test/support/wait-for.ts';
import { rejectIndexOf } from './metrics/label-values.ts';

const close = 'Host: h\r\nConnection: close\r\n';

test('metrics count client and replica traffic over all threads', async () => {
  const answering = httpReplica((message, response) => {
    message.resume();
    message.on('end', () => response.writeHead(message.url === '/missing' ? 404 : 200).end('four'));
  });
  await withReplicas([answering], async (replica) => {
    if (replica === undefined) return;
    await withBalancer(
      [aBalancerReplica(replica.port, 5)],
      async (balancer) => {
        for (let turn = 0; turn < 6; turn += 1) await rawExchange(balancer.port, `POST / HTTP/1.1\r\n${close}Content-Length: 2\r\n\r\nab`);
        await rawExchange(balancer.port, `GET /missing HTTP/1.1\r\n${close}\r\n`);
        await rawExchange(balancer.port, 'GET / HTTP/1.1\r\nConnection: close\r\n\r\n');
        const seen = await waitFor('the last request', async () => {
          const all = await balancer.metrics();
          return all.get('svc_balancer_requests_total{code="400",replica="none"}') === 1 ? all : undefined;
        });
        expect(Object.fromEntries(seen)).toMatchObject({
          'svc_balancer_requests_total{code="200",replica="5"}': 6,
          'svc_balancer_requests_total{code="404",replica="5"}': 1,
          'svc_balancer_rejected_requests_total{reason="bad_host"}': 1,
          svc_balancer_attempts_total: 7,
          svc_balancer_received_bytes_total: 12,
          svc_balancer_sent_bytes_total: 28,
          svc_balancer_request_duration_seconds_count: 8,
          'svc_balancer_time_to_first_byte_seconds_bucket{le="+Inf"}': 7,
          'svc_balancer_replica_time_to_first_byte_seconds_count{replica="5"}': 7,
          svc_balancer_client_connections_opened_total: 8,
          'svc_balancer_requests_in_flight{replica="5"}': 0,
          'svc_balancer_replica_info{replica="5",place="local"}': 1,
          svc_balancer_queue_length: 0,
          svc_balancer_threads: 2,
        });
        expect(seen.get('process_resident_memory_bytes')).toBeGreaterThan(1e7);
        expect(seen.get('process_open_fds')).toBeGreaterThan(3);
        expect(seen.get('svc_balancer_replica_connections')).toBeLessThanOrEqual(
          seen.get('svc_balancer_replica_connections_opened_total') ?? 0,
        );
      },
      { threads: 2 },
    );
  });
});

test('a refusing replica appears in connect failures, retries and the request log', async () => {
  await withReplicas([httpReplica((_, response) => response.end('ok'))], async (replica) => {
    if (replica === undefined) return;
    const replicas = [aBalancerReplica(await refusingPort(), 1, { place: 'aws/us-east-2' }), aBalancerReplica(replica.port, 2)];
    await withBalancer(replicas, async (balancer) => {
      const trace = '4bf92f3577b34da6a3ce929d0e0e4736';
      const fields = `${close}traceparent: 00-${trace}-00f067aa0ba902b7-01\r\n`;
      for (let turn = 0; turn < 2; turn += 1) await rawExchange(balancer.port, `GET /a?secret=1 HTTP/1.1\r\n${fields}\r\n`);
      const lines = await balancer.accessLog(2);
      const tried = lines.find((line) => line['attempts'] === 2);
      expect(tried).toMatchObject({
        path: '/a',
        replica: 2,
        place: 'local',
        protocol: 'h1',
        trace,
        failed: [{ replica: 1, why: 'unreached' }],
      });
      expect(JSON.stringify(lines)).not.toMatch(/secret|127\.0\.0\.1/);
      // The second request tries the refusing replica again only when a busy machine is a second late.
      const retries = lines.filter((line) => line['attempts'] === 2).length;
      expect(Object.fromEntries(await balancer.metrics())).toMatchObject({
        'svc_balancer_retries_total{reason="unreached"}': retries,
        'svc_balancer_connect_failures_total{reason="refused"}': retries,
        'svc_balancer_ejections_total{replica="1"}': 0,
        svc_balancer_attempts_total: lines.length + retries,
      });
    });
  });
});

test('a waiting request appears in the queue, then in the wait histogram and log', async () => {
  await withReplicas([httpReplica((_, response) => response.end('ok'))], async (replica) => {
    if (replica === undefined) return;
    const queue = { maxRequests: 10, maxBytes: 1_048_576, timeoutMs: 300_000, fromZero: true };
    await withBalancer(
      [],
      async (balancer) => {
        const answered = rawExchange(balancer.port, `POST / HTTP/1.1\r\n${close}Content-Length: 5000\r\n\r\n${'b'.repeat(5_000)}`);
        await waitFor('the request to wait', async () => (await balancer.metrics()).get('svc_balancer_queue_length') === 1);
        expect((await balancer.metrics()).get('svc_balancer_queue_bytes')).toBeGreaterThanOrEqual(4_096);
        await balancer.link.setReplicas([aBalancerReplica(replica.port)]);
        await answered;
        const [line] = await balancer.accessLog(1);
        expect(line).toMatchObject({ status: 200, attempts: 1 });
        expect(line?.['queued_ms']).toBeGreaterThan(0);
        expect(Object.fromEntries(await balancer.metrics())).toMatchObject({
          svc_balancer_queue_length: 0,
          svc_balancer_queue_wait_seconds_count: 1,
        });
      },
      { queue },
    );
  });
});

test('every code of an own answer has its own series', () => {
  const source = readFileSync('src/balancer/exchange/balancer-responses.ts', 'utf8');
  const codes = [...source.matchAll(/\bcode: '(?<code>[a-z_]+)'/g)].map(({ groups }) => groups?.['code'] ?? '');
  expect(codes.length).toBeGreaterThan(8);
  expect(codes.filter((code) => rejectIndexOf(code) === 0)).toEqual([]);
});
