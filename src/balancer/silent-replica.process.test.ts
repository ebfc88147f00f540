import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { aBalancerReplica, withBalancer, type AccessLine } from '../../test/support/balancer.ts';
import { openLoad } from '../../test/support/load.ts';
import { httpReplica, RawClient, withReplicas, type FakeReplica } from '../../test/support/raw-http.ts';
import { waitFor } from '../../test/support/wait-for.ts';

/** For requests that are held up on purpose: longer than their test may take, ms. */
const patienceMs = 90_000;

/** Whether a request was sent to the fourth replica. */
const hadIt = ({ replica, failed }: AccessLine): boolean => replica === 4 || JSON.stringify(failed ?? []).includes('"replica":4');

const steady = (): Promise<FakeReplica> => httpReplica((_, response) => setTimeout(() => response.end('ok'), 20));

test(
  'a replica that accepts and never answers gets no new requests after a moment, and again once it answers',
  async () => {
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
          await waitFor('suspicion', () =>
            balancer.link.of('suspect').some(({ replicaId, reason }) => replicaId === 4 && reason === 'timeout'),
          );
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
          // By the balancer's own clock: what had been sent before the mark may be read here much later, when this process is held up.
          const markedAt = Date.parse(/"time":"([^"]+)"[^\n]*answers nothing while others do/.exec(balancer.output)?.[1] ?? '');
          const meanwhile = (await balancer.accessLog(result.sent)).filter(({ at }) => Number(at) > markedAt && Number(at) < releasedAt);
          expect(meanwhile.length).toBeGreaterThan(300);
          // One may have been on its way when the mark was set.
          expect(meanwhile.filter(hadIt).length).toBeLessThanOrEqual(2);
          await balancer.link.idle();
        },
        { firstByteTimeoutMs: patienceMs },
      );
    });
    // Half of it is rest on a free machine, and 300 requests a second are much for a busy one.
  },
  patienceMs,
);

test('requests that wait at a replica found to hang are answered by another one, when they may run twice', async () => {
  const atHanging: string[] = [];
  const hanging = httpReplica((request) => void atHanging.push(request.method ?? ''));
  await withReplicas([steady(), steady(), steady(), hanging], async (...replicas) => {
    await withBalancer(
      replicas.map(({ port }, index) => aBalancerReplica(port, index + 1)),
      async (balancer) => {
        const load = openLoad({ url: balancer.url }, 200);
        await waitFor('requests that hang', () => atHanging.length > 1);
        await waitFor('suspicion', () => balancer.link.of('suspect').some(({ replicaId }) => replicaId === 4));
        const result = await load.stop();
        expect(result.statuses).toEqual({ 200: result.sent });
        const left = (await balancer.accessLog(result.sent)).filter(({ failed }) => JSON.stringify(failed ?? []).includes('stalled'));
        // It may have been left before it had read the request.
        await waitFor('the hanging one to see all that it was sent', () => atHanging.length >= left.length);
        expect(atHanging.length).toBe(left.length);
        await balancer.link.idle();
      },
    );
  });
});

test('what came while the balancer itself stood still has all of its time: its replica did not answer because nobody had asked it', async () => {
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
        await sleep(3_300);
        balancer.signal('SIGCONT');
        expect(await client.until(/^HTTP\/1\.1 (\d+)/)).toMatchObject({ 1: '200' });
        client.destroy();
      },
      { firstByteTimeoutMs: 3_000 },
    );
  });
});
