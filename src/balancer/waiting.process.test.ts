import { expect, test } from 'vitest';
import { aBalancerReplica, withBalancer, type RunningBalancer } from '../../test/support/balancer.ts';
import { httpReplica, RawClient, refusingPort, withReplicas, type FakeReplica } from '../../test/support/raw-http.ts';
import { waitFor } from '../../test/support/wait-for.ts';

const echo = (): Promise<FakeReplica> =>
  httpReplica((incoming, response) => {
    incoming.pipe(response);
  });

const waitingFor = (ms: number) => ({ queue: { maxRequests: 1_000, maxBytes: 67_108_864, timeoutMs: ms, fromZero: false } });

/** Requests that the balancer has taken and not answered. */
const taken = (balancer: RunningBalancer): number => balancer.link.lastStats?.requestsTotal ?? 0;

test('a request that comes when the last replica has just gone waits for the next one, body and all', async () => {
  await withReplicas([echo()], async (replica) => {
    const gone = aBalancerReplica(await refusingPort(), 1);
    await withBalancer(
      [gone],
      async (balancer) => {
        const reply = fetch(balancer.url, { method: 'POST', body: 'precious' });
        await waitFor('the request', () => taken(balancer) === 1);
        await balancer.link.setReplicas([]);
        await balancer.link.setReplicas([aBalancerReplica(replica?.port ?? 0, 2)]);
        expect(await (await reply).text()).toBe('precious');
        await balancer.link.idle();
      },
      waitingFor(20_000),
    );
  });
});

test('waiting ends with 503 when nothing comes', async () => {
  await withBalancer(
    [aBalancerReplica(await refusingPort(), 1)],
    async (balancer) => {
      const reply = await fetch(balancer.url);
      expect([reply.status, reply.headers.get('x-svc-reason'), reply.headers.get('retry-after')]).toEqual([503, 'no_ready_replica', '7']);
      await balancer.link.idle();
    },
    waitingFor(500),
  );
});

test('a client that leaves while it waits is forgotten', async () => {
  await withReplicas([echo()], async (replica) => {
    await withBalancer(
      [aBalancerReplica(await refusingPort(), 1)],
      async (balancer) => {
        const client = new RawClient(balancer.port);
        client.send('GET / HTTP/1.1\r\nHost: h\r\n\r\n');
        await waitFor('the request', () => taken(balancer) === 1);
        client.destroy();
        await waitFor('its line in the log', async () => (await balancer.accessLog(1))[0]?.['outcome'] === 'client_gone');
        await balancer.link.setReplicas([aBalancerReplica(replica?.port ?? 0, 2)]);
        expect(await (await fetch(balancer.url, { method: 'POST', body: 'next' })).text()).toBe('next');
        await balancer.link.idle();
      },
      waitingFor(20_000),
    );
  });
});
