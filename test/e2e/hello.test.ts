import { expect, test } from 'vitest';
import { withSvc } from '../support/e2e.ts';

const hello = 'examples/hello/service.yaml';

test('the first example: up, two replicas share requests, status, events, down, nothing left', async () => {
  await withSvc(async (svc) => {
    const printed = await svc.ok(['serve', 'up', hello, '-n', 'hello']);
    const { endpoint } = await svc.ready('hello', 2);
    expect(printed).toContain(endpoint);
    expect(endpoint).toMatch(/^http:\/\/127\.0\.0\.1:\d+$/);

    const answers: string[] = [];
    for (let request = 0; request < 10; request += 1) answers.push(await (await fetch(`${endpoint}/replica.txt`)).text());
    const count = (replica: string): number => answers.filter((answer) => answer === replica).length;
    expect([count('replica 1\n'), count('replica 2\n')]).toEqual([5, 5]);
    expect(await (await fetch(endpoint)).text()).toContain('Hello from a replica');

    const { status, replicasReady, replicasTotal, targetReplicas, replicas } = await svc.service('hello');
    expect({ status, replicasReady, replicasTotal, targetReplicas }).toEqual({
      status: 'READY',
      replicasReady: 2,
      replicasTotal: 2,
      targetReplicas: 2,
    });
    expect(replicas.map(({ id, version, provider, hourlyUsd }) => ({ id, version, provider, hourlyUsd }))).toEqual([
      { id: 1, version: 1, provider: 'local', hourlyUsd: 0 },
      { id: 2, version: 1, provider: 'local', hourlyUsd: 0 },
    ]);

    const table = await svc.ok(['serve', 'status', 'hello']);
    expect(table).toMatch(/NAME +VERSION +UPTIME +STATUS +REPLICAS +ENDPOINT/);
    expect(table).toMatch(/hello +1 +\S.* +READY +2\/2 +http:/);
    expect((await svc.ok(['serve', 'status', '--endpoint', 'hello'])).trim()).toBe(endpoint);

    const changes = (await svc.events('hello')).filter(({ replicaId, from, to }) => replicaId === 1 && from !== to);
    expect(changes.map(({ to }) => to)).toEqual(['PENDING', 'PROVISIONING', 'STARTING', 'READY']);
    await svc.end();
  });
});

test('up on a terminal follows until a replica is ready and shows next steps', async () => {
  await withSvc(async (svc) => {
    const screen = await svc.ok(['serve', 'up', hello, '-n', 'hello'], { tty: true });
    const { endpoint, replicasReady } = await svc.service('hello');
    expect(replicasReady).toBeGreaterThan(0);
    expect(screen).toContain(endpoint);
    for (const next of ['svc serve status hello', 'svc serve logs hello', 'svc serve down hello']) expect(screen).toContain(next);
    await svc.end();
  });
});

test('up without a name generates one; a second up makes another service', async () => {
  await withSvc(async (svc) => {
    await svc.ok(['serve', 'up', hello]);
    await svc.ok(['serve', 'up', hello]);
    const services = await svc.services();
    expect(services.map(({ name }) => /^svc-[0-9a-f]{4}$/.test(name))).toEqual([true, true]);
    expect(new Set(services.map(({ endpoint }) => endpoint)).size).toBe(2);
    await svc.end();
  });
});
