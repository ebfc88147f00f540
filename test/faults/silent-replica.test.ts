import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { aBalancerReplica, withBalancer, type AccessLine } from '../support/balancer.ts';
import { openLoad } from '../support/load.ts';
import { httpReplica, RawClient, withReplicas, type FakeReplica } from '../support/raw-http.ts';
import { waitFor } from '../support/wait-for.ts';

/** For requests that the test delays: longer than the test may take, ms. */
const patienceMs = 1_200_000;

/** Whether the balancer sent a request to the fourth replica. */
const hadIt = ({ replica, failed }: AccessLine): boolean => replica === 4 || JSON.stringify(failed ?? []).includes('"replica":4');

const steady = (): Promise<FakeReplica> => httpReplica((_, response) => setTimeout(() => response.end('ok'), 20));

test('a silent replica gets no new requests until it answers again', async () => {
  let isSilent = false;
  const held: (() => void)[] = [];

  const hanging = httpReplica((_, response) => {
    if (isSilent) held.push(() => response.end('late'));
    else setTimeout(() => response.end('ok'), 20);
  });
  await withReplicas([steady(), steady(), steady(), hanging], async (...replicas) => {
    await withBalancer(
      replicas.map(({ port }, index) => aBalancerReplica(port, index + 1)),
      async (balancer) => {
        const load = openLoad({ url: balancer.url, timeoutMs: patienceMs, mostUnderWay: 400 }, 300);
        await waitFor('some load', () => load.current().sent > 300);
        isSilent = true;
        await waitFor('it to be passed over', () => balancer.output.includes('answers nothing while others do'));
        // The report and the log arrive on different connections.
        await waitFor('suspicion', () => balancer.link.of('suspect').some(({ replicaId }) => replicaId === 4));
        const before = load.current().sent;
        await waitFor('more load', () => load.current().sent > before + 600);
        expect(held.length).toBeGreaterThan(1);
        const releasedAt = Date.now();
        isSilent = false;
        for (const answer of held) answer();
        await waitFor(
          'it to be used again',
          async () => (await fetch(balancer.url, { headers: { connection: 'close' } })).headers.get('x-svc-replica') === '4',
        );
        const result = await load.stop();
        expect(result.statuses).toEqual({ 200: result.sent });
        // Use the balancer's clock: when this process stalls, it reads requests sent before the mark much later.
        const markedAt = Date.parse(/"time":"([^"]+)"[^\n]*answers nothing while others do/.exec(balancer.output)?.[1] ?? '');
        const lines = await balancer.accessLog(result.sent);
        const meanwhile = lines.filter(({ at }) => Date.parse(String(at)) > markedAt && Date.parse(String(at)) < releasedAt);
        expect(meanwhile.length).toBeGreaterThan(300);
        // One request may have been in flight at the mark.
        expect(meanwhile.filter(hadIt).length).toBeLessThanOrEqual(2);
        await balancer.link.idle();
      },
      { firstByteTimeoutMs: patienceMs },
    );
  });
});

test('repeatable requests at a hung replica are answered by another one', async () => {
  const atHanging: string[] = [];
  const hanging = httpReplica((request) => void atHanging.push(request.method ?? ''));
  await withReplicas([steady(), steady(), steady(), hanging], async (...replicas) => {
    await withBalancer(
      replicas.map(({ port }, index) => aBalancerReplica(port, index + 1)),
      async (balancer) => {
        const load = openLoad({ url: balancer.url }, 200);
        await waitFor('requests that hang', () => atHanging.length > 1);
        await waitFor('suspicion', () => balancer.link.of('suspect').some(({ replicaId }) => replicaId === 4));
        // Its requests have moved, so none waits there; it stays silent until it answers a request or a probe.
        await waitFor('reports that go on', () => balancer.link.of('suspect').filter(({ reason }) => reason === 'silent').length > 4);
        const result = await load.stop();
        expect(result.statuses).toEqual({ 200: result.sent });
        const left = (await balancer.accessLog(result.sent)).filter(({ failed }) => JSON.stringify(failed ?? []).includes('stalled'));
        // The request may have moved before the replica had read it.
        await waitFor('the hanging one to see all that it was sent', () => atHanging.length >= left.length);
        expect(atHanging.length).toBe(left.length);
        await balancer.link.idle();
      },
    );
  });
});

test('a replica with slow request bodies is not silent', async () => {
  const reading = httpReplica((request, response) => request.resume().on('end', () => response.end('ok')));
  await withReplicas([reading], async (replica) => {
    await withBalancer([aBalancerReplica(replica?.port ?? 0)], async (balancer) => {
      const uploads = [1, 2, 3].map(() =>
        new RawClient(balancer.port).send('PUT / HTTP/1.1\r\nHost: h\r\nConnection: close\r\nContent-Length: 5\r\n\r\nslow'),
      );
      await waitFor('the uploads', () => balancer.link.lastStats?.inFlight[1] === uploads.length);
      const reports = balancer.link.of('stats').length;
      await waitFor('three seconds', () => balancer.link.of('stats').length > reports + 3);
      expect(balancer.link.of('suspect')).toEqual([]);
      for (const upload of uploads) {
        upload.send('!');
        expect(await upload.closed()).toMatch(/^HTTP\/1\.1 200 /);
      }
    });
  });
});

test('after the balancer itself stalled, requests get their full time', async () => {
  const slow = httpReplica((_, response) => setTimeout(() => response.end('ok'), 800));
  await withReplicas([slow], async (replica) => {
    await withBalancer(
      [aBalancerReplica(replica?.port ?? 0)],
      async (balancer) => {
        const request = 'GET / HTTP/1.1\r\nHost: h\r\n\r\n';
        const client = new RawClient(balancer.port).send(request);
        await client.until(/ok$/);
        client.received = '';
        balancer.signal('SIGSTOP');
        client.send(request);
        await sleep(6_300);
        balancer.signal('SIGCONT');
        expect(await client.until(/^HTTP\/1\.1 (\d+)/)).toMatchObject({ 1: '200' });
        client.destroy();
      },
      { firstByteTimeoutMs: 6_000 },
    );
  });
});
