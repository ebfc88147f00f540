import { Agent, get } from 'node:http';
import { networkInterfaces } from 'node:os';
import { expect, test } from 'vitest';
import { withSvc } from '../support/e2e.ts';
import { letGo } from '../support/processes.ts';
import { waitFor } from '../support/wait-for.ts';

const hello = 'examples/hello/service.yaml';

test('the endpoint keeps its port and replicas across a controller restart', async () => {
  await withSvc(async (svc) => {
    await svc.ok(['serve', 'up', hello, '-n', 'hello']);
    const before = await svc.ready('hello', 2);
    await svc.ok(['controller', 'stop', '--keep-services']);
    expect((await fetch(before.endpoint)).status).toBe(200);
    await svc.ok(['controller', 'start']);
    const after = await svc.ready('hello', 2);
    expect(after.endpoint).toBe(before.endpoint);
    expect(after.replicas.map(({ id, readyAt }) => ({ id, readyAt }))).toEqual(before.replicas.map(({ id, readyAt }) => ({ id, readyAt })));
    await svc.end();
  });
});

/** Returns the status of a request to the endpoint's port at another address; 0 when the connection is refused. */
async function statusFrom(address: string, endpoint: string): Promise<number> {
  try {
    return (await fetch(`http://${address}:${new URL(endpoint).port}/`)).status;
  } catch {
    // fetch throws for a refused connection: the expected result.
    return 0;
  }
}

test('only this machine reaches the endpoint, unless it is exposed', async () => {
  const outside = Object.values(networkInterfaces())
    .flatMap((addresses) => addresses ?? [])
    .find(({ family, internal }) => family === 'IPv4' && !internal)?.address;
  await withSvc(async (svc) => {
    await svc.ok(['serve', 'up', hello, '-n', 'closed']);
    await svc.ok(['serve', 'up', hello, '-n', 'open', '--expose']);
    const [closed, open] = [await svc.ready('closed', 1), await svc.ready('open', 1)];
    expect([closed.exposed, open.exposed]).toEqual([false, true]);
    expect([await statusFrom('127.0.0.1', closed.endpoint), await statusFrom('127.0.0.1', open.endpoint)]).toEqual([200, 200]);
    // A machine without a network has no external address to try.
    const expected = outside === undefined ? [] : [0, 200];
    expect(outside === undefined ? [] : [await statusFrom(outside, closed.endpoint), await statusFrom(outside, open.endpoint)]).toEqual(
      expected,
    );
    await svc.end();
  });
});

/** Sends a request and keeps its connection open. */
function askKeepingConnection(endpoint: string, agent: Agent): Promise<number | undefined> {
  return new Promise((resolve, reject) => {
    const request = get(endpoint, { agent }, (response) => response.resume().once('end', () => resolve(response.statusCode)));
    request.once('error', reject);
  });
}

test('stopping a controller while services terminate leaves no process behind', async () => {
  await withSvc(async (svc) => {
    const agent = new Agent({ keepAlive: true });
    const names = ['one', 'two', 'three'];
    try {
      for (const name of names) await svc.ok(['serve', 'up', hello, '-n', name]);
      // Open client connections delay the end of a balancer.
      for (const name of names) expect(await askKeepingConnection((await svc.ready(name, 1)).endpoint, agent)).toBe(200);
      await svc.end();
    } finally {
      agent.destroy();
    }
  });
});

test('before the first ready replica the endpoint answers 503 as JSON at once', async () => {
  await withSvc(async (svc) => {
    const file = svc.file(
      'service.yaml',
      'service: {}\nresources:\n  ports: 8080\nrun: until [ -e go ]; do sleep 0.1; done; exec python3 -m http.server 8080\n',
    );
    await svc.ok(['serve', 'up', file, '-n', 'slow', '--no-wait']);
    const { endpoint } = await svc.service('slow');
    const reply = await fetch(endpoint);
    expect([reply.status, reply.headers.get('x-svc-reason'), Number(reply.headers.get('retry-after')) > 0]).toEqual([
      503,
      'no_ready_replica',
      true,
    ]);
    expect(await reply.json()).toMatchObject({ error: { code: 'no_ready_replica' } });
    await waitFor('its program', async () => (await svc.service('slow')).replicas.some(({ status }) => status === 'STARTING'));
    letGo(svc.home);
    await svc.ready('slow', 1);
    expect((await fetch(endpoint)).status).toBe(200);
    await svc.end();
  });
});
