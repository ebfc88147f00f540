import { execFileSync } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { constants } from 'node:http2';
import type { ServerResponse } from 'node:http';
import { request } from 'node:https';
import { expect, test } from 'vitest';
import type { RequestQueueLimits } from '../domain/balancer-link.ts';
import { aBalancerReplica, withBalancer, type RunningBalancer } from '../../test/support/balancer.ts';
import { Http2TestClient, withHttp2 } from '../../test/support/http2.ts';
import { httpReplica, RawClient, rawExchange, withReplicas, type FakeReplica } from '../../test/support/raw-http.ts';
import { withTlsBalancer } from '../../test/support/tls-files.ts';
import { waitFor } from '../../test/support/wait-for.ts';

const openFiles = 1_024;

/** Requests that hang must do so until their test ends: a reply would free their files, or count as a refusal. */
const patient = { firstByteTimeoutMs: 90_000, idleTimeoutMs: 90_000 };

const waitingFor = (timeoutMs: number): RequestQueueLimits => ({ maxRequests: 1_000, maxBytes: 67_108_864, timeoutMs, fromZero: false });

/** Answers at once, but never at `/hang`. */
const replicaThatHangs = (): Promise<FakeReplica> =>
  httpReplica((incoming, response) => {
    if (incoming.url !== '/hang') response.end('ok');
  });

/** The status of a request over HTTP/1.1 and TLS, on a connection of its own. */
function getOnce(port: number): Promise<number> {
  return new Promise((resolve, reject) => {
    const call = request({ host: '127.0.0.1', port, rejectUnauthorized: false, agent: false }, (response) => {
      response.resume().on('end', () => resolve(response.statusCode ?? 0));
    });
    call.on('error', reject);
    call.end();
  });
}

const filesOf = (balancer: RunningBalancer): number => readdirSync(`/proc/${balancer.pid}/fd`).length;

async function refusedBy(balancer: RunningBalancer, kind: string): Promise<number> {
  return (await balancer.metrics()).get(`svc_balancer_refused_for_open_files_total{kind="${kind}"}`) ?? Number.NaN;
}

test.each([1, 2])('4 clients with 250 hung streams each do not lock out others (1,024 files, %i threads)', async (threads) => {
  await withReplicas([replicaThatHangs()], async (replica) => {
    await withTlsBalancer(
      [replica?.port ?? 0],
      async (balancer, url) => {
        const attackers = Array.from({ length: 4 }, () => new Http2TestClient(url, { rejectUnauthorized: false }));
        try {
          await Promise.all(attackers.map((client) => client.get('/')));
          const refusals = new Set<string>();
          for (const client of attackers)
            for (let stream = 0; stream < 250; stream += 1)
              void client.get('/hang').then(({ status, code }) => refusals.add(status === 0 ? `reset ${code}` : String(status)));
          await waitFor('the attack to have its share', async () => (await refusedBy(balancer, 'stream')) > 0);
          await withHttp2(url, async (client) => {
            for (let round = 0; round < 40; round += 1) {
              expect(await getOnce(balancer.port)).toBe(200);
              const answers = await Promise.all(Array.from({ length: 5 }, () => client.get('/')));
              expect(answers.map(({ status }) => status)).toEqual([200, 200, 200, 200, 200]);
            }
          });
          expect(filesOf(balancer)).toBeLessThan(openFiles / 2);
          // A client that has not read the balancer's newest SETTINGS yet gets REFUSED_STREAM.
          expect([...refusals].filter((how) => how !== '503' && how !== `reset ${constants.NGHTTP2_REFUSED_STREAM}`)).toEqual([]);
        } finally {
          for (const client of attackers) client.close();
        }
        await balancer.link.idle();
        expect(await getOnce(balancer.port)).toBe(200);
        expect(balancer.output).not.toContain('Unexpected error');
      },
      { ...patient, threads, queue: waitingFor(2_000) },
      openFiles,
    );
  });
});

test('requests over the share of their connection wait for it, and all succeed', async () => {
  await withReplicas([httpReplica((_, response) => void setTimeout(() => response.end('ok'), 20))], async (replica) => {
    await withTlsBalancer(
      [replica?.port ?? 0],
      async (balancer, url) => {
        const clients = Array.from({ length: 8 }, () => new Http2TestClient(url, { rejectUnauthorized: false }));
        try {
          await Promise.all(clients.map((client) => client.get('/')));
          const all = clients.flatMap((client) => Array.from({ length: 45 }, () => client.get('/')));
          expect(new Set((await Promise.all(all)).map(({ status }) => status))).toEqual(new Set([200]));
          expect(await refusedBy(balancer, 'stream')).toBe(0);
        } finally {
          for (const client of clients) client.close();
        }
      },
      { ...patient, queue: waitingFor(60_000) },
      openFiles,
    );
  });
});

test('idle connections to replicas are closed when their files are needed', async () => {
  const together: ServerResponse[] = [];
  const replicas = Array.from({ length: 2 }, () =>
    httpReplica((incoming, response) => {
      // Longer than the test takes.
      response.setHeader('Keep-Alive', 'timeout=60');
      if (incoming.url === '/hang') response.write('part');
      // Each has a connection of its own.
      else if (together.push(response) === 40) for (const each of together) each.end('ok');
    }),
  );
  await withReplicas(replicas, async (...started) => {
    const [first, second] = started.map(({ port }, index) => aBalancerReplica(port, index + 1));
    if (first === undefined || second === undefined) return;
    await withBalancer(
      [first],
      async (balancer) => {
        // 256 files leave 96 for traffic: 48 clients, and a replica connection for each.
        const keepAlive = Array.from({ length: 40 }, () => new RawClient(balancer.port).send('GET / HTTP/1.1\r\nHost: h\r\n\r\n'));
        await Promise.all(keepAlive.map((client) => client.untilResponse('GET')));
        expect(started[0]?.connections.size).toBe(40);
        await balancer.link.setReplicas([first, second]);
        const hung = keepAlive.map((client) => client.send('GET /hang HTTP/1.1\r\nHost: h\r\n\r\n'));
        await Promise.all(hung.map((client) => client.until(/part/)));
        const more = Array.from({ length: 8 }, () => new RawClient(balancer.port).send('GET /hang HTTP/1.1\r\nHost: h\r\n\r\n'));
        await Promise.all(more.map((client) => client.until(/part/)));
        await waitFor('the idle ones to be closed', () => started.reduce((sum, { connections }) => sum + connections.size, 0) <= 48);
        expect(filesOf(balancer)).toBeLessThan(256);
        const late = await rawExchange(balancer.port, 'GET / HTTP/1.1\r\nHost: h\r\n\r\n');
        expect(late.received).toMatch(/^HTTP\/1.1 503 [^]*x-svc-reason: overloaded/i);
        expect([await refusedBy(balancer, 'client_connection'), await refusedBy(balancer, 'replica_connection')]).toEqual([1, 0]);
        for (const client of [...keepAlive, ...more]) client.destroy();
      },
      patient,
      256,
    );
  });
});

test('at the open files limit of the system, only connections and requests fail', async () => {
  await withReplicas([httpReplica((_, response) => response.setHeader('Connection', 'close').end('ok'))], async (replica) => {
    await withBalancer([aBalancerReplica(replica?.port ?? 0)], async (balancer) => {
      const get = 'GET / HTTP/1.1\r\nHost: h\r\n\r\n';
      const client = new RawClient(balancer.port).send(get);
      await client.untilResponse('GET');
      const limitTo = (files: number): Buffer => execFileSync('prlimit', ['--pid', String(balancer.pid), `--nofile=${files}:`]);
      const before = Number(/Max open files +(\d+)/.exec(execFileSync('cat', [`/proc/${balancer.pid}/limits`]).toString())?.[1]);
      limitTo(1);
      // No file is left for a replica connection.
      client.received = '';
      client.send(get);
      await client.until(/^HTTP\/1.1 503 [^]*x-svc-reason: overloaded/i);
      // No file is left for a client's connection: it is closed, or waits in the kernel.
      const late = Array.from({ length: 50 }, () => new RawClient(balancer.port).send(get));
      await Promise.all(late.map((each) => waitFor('the connection', () => !each.socket.connecting)));
      limitTo(before);
      await Promise.all(
        late.map((each) => waitFor('an answer or an end', () => each.received.includes(' 200 ') || each.ended !== undefined)),
      );
      expect((await rawExchange(balancer.port, 'GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n')).received).toContain(' 200 ');
      expect(balancer.output.split('\n').length).toBeLessThan(100);
      for (const each of [client, ...late]) each.destroy();
    });
  });
});
