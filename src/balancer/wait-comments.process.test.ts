import type { RequestListener } from 'node:http';
import { expect, test } from 'vitest';
import { aBalancerReplica, withBalancer, type RunningBalancer } from '../../test/support/balancer.ts';
import { httpReplica, refusingPort, withReplicas } from '../../test/support/raw-http.ts';
import { withHttp2 } from '../../test/support/http2.ts';
import { withTlsBalancer } from '../../test/support/tls-files.ts';
import { waitFor } from '../../test/support/wait-for.ts';

const queue = { maxRequests: 1_000, maxBytes: 67_108_864, timeoutMs: 300_000, fromZero: true };
const fields = { accept: 'text/event-stream', 'x-svc-wait': 'comments' };

const events: RequestListener = (request, response) => {
  request.on('data', () => undefined);
  request.on('end', () => {
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    response.end(`data: ${request.method} ${'x-svc-wait' in request.headers ? 'with wait' : 'no wait'}\n\n`);
  });
};
const invalid: RequestListener = (_, response) => {
  response.writeHead(422, { 'content-type': 'application/json' });
  response.end('{"detail":"bad"}');
};

/** Sends a POST to a balancer without replicas. Returns the text so far, once the response's head has arrived. */
async function startStream(url: string): Promise<{ readonly response: Response; readonly rest: () => Promise<string> }> {
  const response = await fetch(url, { method: 'POST', body: 'x', headers: fields });
  return { response, rest: () => response.text() };
}

const expectReplica = (balancer: RunningBalancer): void => {
  const expected = { phase: 'loading', readyAt: Date.now() + 60_000 };
  balancer.link.send(JSON.stringify({ type: 'replicas', epoch: 'expects', revision: 1, replicas: [], expected }));
};

test('a client that asks for comments gets 200 and a comment, then the events of the replica', async () => {
  await withReplicas([httpReplica(events)], async (replica) => {
    await withBalancer(
      [],
      async (balancer) => {
        expectReplica(balancer);
        await waitFor('the set', () => balancer.link.of('applied').some(({ epoch }) => epoch === 'expects'));
        const { response, rest } = await startStream(balancer.url);
        expect([response.status, response.headers.get('content-type')]).toEqual([200, 'text/event-stream']);
        await balancer.link.setReplicas([aBalancerReplica(replica?.port ?? 0)]);
        expect(await rest()).toMatch(/^: waiting: a replica is loading and should be ready in about \d+ s\n\ndata: POST no wait\n\n$/);
        await balancer.link.idle();
        expect((await balancer.accessLog(1))[0]).toMatchObject({ status: 200, outcome: 'ok' });
      },
      { queue },
    );
  });
});

test('after comments, a response that is no event stream becomes an error event', async () => {
  await withReplicas([httpReplica(invalid)], async (replica) => {
    await withBalancer(
      [],
      async (balancer) => {
        const { rest } = await startStream(balancer.url);
        await balancer.link.setReplicas([aBalancerReplica(replica?.port ?? 0)]);
        const text = await rest();
        expect(text).toMatch(/^: waiting for a replica\n\nevent: error\ndata: /);
        expect(text).toContain('"code":"not_an_event_stream","status":422');
        await balancer.link.idle();
      },
      { queue },
    );
  });
});

test('after comments, a queue timeout becomes an error event', async () => {
  await withBalancer(
    [],
    async (balancer) => {
      const { rest } = await startStream(balancer.url);
      expect(await rest()).toContain('"code":"queue_timeout","status":504');
      await balancer.link.idle();
    },
    { queue: { ...queue, timeoutMs: 500 } },
  );
});

test('a replica that refuses its connection after comments is passed over', async () => {
  await withReplicas([httpReplica(events)], async (replica) => {
    await withBalancer(
      [],
      async (balancer) => {
        const { rest } = await startStream(balancer.url);
        await balancer.link.setReplicas([aBalancerReplica(await refusingPort(), 1)]);
        await balancer.link.setReplicas([aBalancerReplica(replica?.port ?? 0, 2)]);
        expect(await rest()).toBe(': waiting for a replica\n\ndata: POST no wait\n\n');
      },
      { queue },
    );
  });
});

test('a client that asks for comments over HTTP/2 gets them before the events', async () => {
  await withReplicas([httpReplica(events)], async (replica) => {
    await withTlsBalancer(
      [],
      async (balancer, url) => {
        await withHttp2(url, async (client) => {
          const reply = client.post('/', 'x', fields);
          await waitFor('it to wait', () => balancer.link.lastStats?.queued === 1);
          await balancer.link.setReplicas([aBalancerReplica(replica?.port ?? 0)]);
          const { status, body } = await reply;
          expect([status, body.toString()]).toEqual([200, ': waiting for a replica\n\ndata: POST no wait\n\n']);
        });
      },
      { queue },
    );
  });
});
