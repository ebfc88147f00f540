import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { withSvc, type Svc } from '../support/e2e.ts';
import { openLoad, outcomes } from '../support/load.ts';
import { waitFor } from '../support/wait-for.ts';

const server = `const { createServer } = require('node:http');
const version = process.argv[2];
createServer((request, response) => {
  if (request.url !== '/slow') return response.end(version);
  response.write('begin ');
  setTimeout(() => response.end(version), 3000);
}).listen(8080);
process.once('SIGTERM', () => setTimeout(() => process.exit(0), 4000));
`;

function serviceFile(svc: Svc, run: string, more = ''): string {
  svc.file('web/server.cjs', server);
  return svc.file(
    'web/service.yaml',
    `service:\n  readiness_probe: /\n  replicas: 2\n${more}resources: {infra: local, ports: 8080}\nworkdir: .\nrun: ${run}\n`,
  );
}

const program = (version: string): string => `exec node server.cjs ${version}`;

test('updates and a rollback lose no request and cut no stream; the endpoint stays', async () => {
  await withSvc(async (svc) => {
    await svc.ok(['serve', 'up', serviceFile(svc, program('one')), '-n', 'web']);
    const { endpoint } = await svc.ready('web', 2);
    const load = openLoad({ url: endpoint }, 50);
    const streams = openLoad({ url: `${endpoint}/slow` }, 5);
    await svc.ok(['serve', 'update', 'web', serviceFile(svc, program('two')), '--yes', '--wait']);
    expect(await (await fetch(endpoint)).text()).toBe('two');
    expect(await svc.service('web')).toMatchObject({ version: 2, activeVersions: [2], replicasReady: 2, endpoint });

    // Only the policy changes: the replicas stay, and the balancer hands over to one with the new policy.
    const before = (await svc.service('web')).replicas.filter(({ status }) => status === 'READY').map(({ id }) => id);
    const balanced = serviceFile(svc, program('two'), '  load_balancing_policy: round_robin\n');
    await svc.ok(['serve', 'update', 'web', balanced, '--yes', '--wait']);
    const after = await svc.service('web');
    expect(after.replicas.filter(({ status }) => status === 'READY').map(({ id }) => id)).toEqual(before);
    expect([after.version, after.loadBalancingPolicy]).toEqual([3, 'round_robin']);
    await waitFor(
      'the balancer with the new policy',
      async () => (await svc.service('web')).balancerPid !== after.balancerPid || isHandedOver(svc),
    );

    await svc.ok(['serve', 'rollback', 'web', '--to', '1', '--yes', '--wait']);
    expect(await (await fetch(endpoint)).text()).toBe('one');
    for (const result of [await load.stop(), await streams.stop()]) expect(outcomes(result)).toEqual({ 200: result.sent });
    const listed = await svc.ok(['serve', 'versions', 'web']);
    expect(listed).toMatch(/^4 .*current/m);
    expect(listed).toContain('+run: exec node server.cjs two');
    await svc.end();
  });
});

/** Whether the log of the balancer has its second start. */
function isHandedOver({ home }: Svc): boolean {
  const log = join(home, 'controller.log');
  return existsSync(log) && readFileSync(log, 'utf8').includes('a process handed over');
}

test('a version that never becomes ready leaves the old one serving, and says why', async () => {
  await withSvc(async (svc) => {
    await svc.ok(['serve', 'up', serviceFile(svc, program('one')), '-n', 'web']);
    const { endpoint } = await svc.ready('web', 2);
    const load = openLoad({ url: endpoint }, 20);
    const file = serviceFile(svc, 'echo the model is missing; exit 3');
    const failed = await svc.run(['serve', 'update', 'web', file, '--yes', '--wait']);
    expect([failed.code === 0, failed.stderr]).toEqual([false, expect.stringContaining('the model is missing')]);
    expect(failed.stderr).toContain('svc serve rollback web');
    expect(await svc.service('web')).toMatchObject({ status: 'READY', version: 2, activeVersions: [1], replicasReady: 2 });
    await svc.ok(['serve', 'rollback', 'web', '--yes', '--wait']);
    expect(await svc.service('web')).toMatchObject({ version: 3, activeVersions: [3], replicasReady: 2, reason: null });
    const result = await load.stop();
    expect(outcomes(result)).toEqual({ 200: result.sent });
    await svc.end();
  });
});

test('an existing name is refused by up, which names update; without a terminal update asks for --yes', async () => {
  await withSvc(async (svc) => {
    const file = serviceFile(svc, program('one'));
    await svc.ok(['serve', 'up', file, '-n', 'web']);
    const again = await svc.run(['serve', 'up', file, '-n', 'web']);
    expect([again.code, again.stderr]).toEqual([4, expect.stringContaining('svc serve update web FILE')]);
    expect(await svc.ok(['serve', 'update', 'web', file, '--json'])).toContain('"version": null');
    const asked = await svc.run(['serve', 'update', 'web', serviceFile(svc, program('two'))]);
    expect([asked.code, asked.stderr]).toEqual([2, expect.stringContaining('SVC_CONFIRM_NEEDED')]);
    expect((await svc.service('web')).version).toBe(1);
    await svc.end();
  });
});
