import { expect, test } from 'vitest';
import { withSvc, type Svc } from '../support/e2e.ts';
import { openLoad, outcomes } from '../support/load.ts';
import { waitFor } from '../support/wait-for.ts';

const server = `const { createServer } = require('node:http');
const [, , version, faulty] = process.argv;
let count = 0;
createServer((request, response) => {
  count += 1;
  if (faulty === 'faulty' && request.url === '/work' && count % 3 === 0) response.statusCode = 500;
  response.end(version);
}).listen(8080);
`;

function serviceFile(svc: Svc, run: string, more = ''): string {
  svc.file('web/server.cjs', server);
  return svc.file(
    'web/service.yaml',
    `service:\n  readiness_probe: /\n  replicas: 2\n${more}resources: {infra: local, ports: 8080}\nworkdir: .\nrun: exec node server.cjs ${run}\n`,
  );
}

async function answerOf(endpoint: string, headers: Readonly<Record<string, string>> = {}): Promise<readonly [string, string | null]> {
  const response = await fetch(endpoint, { headers });
  return [await response.text(), response.headers.get('x-svc-version')];
}

test('blue-green moves all requests at once, goes back in a moment, and loses none', async () => {
  await withSvc(async (svc) => {
    await svc.ok(['serve', 'up', serviceFile(svc, 'one'), '-n', 'web']);
    const { endpoint } = await svc.ready('web', 2);
    const load = openLoad({ url: endpoint }, 100);
    const file = serviceFile(svc, 'two');
    const started = await svc.run(['serve', 'update', 'web', file, '--mode', 'blue-green', '--bake', '1h', '--yes', '--no-wait']);
    expect([started.code, started.stderr]).toEqual([0, expect.stringContaining('All requests move at once')]);
    await waitFor('the switch', async () => (await svc.service('web')).update?.share === 1);
    expect(await answerOf(endpoint)).toEqual(['two', '2']);
    expect(await answerOf(endpoint, { 'x-svc-version': '1' })).toEqual(['one', '1']);
    expect((await svc.service('web')).activeVersions).toEqual([1, 2]);
    await svc.ok(['serve', 'rollback', 'web', '--yes', '--wait']);
    expect((await answerOf(endpoint))[0]).toBe('one');
    const back = await svc.service('web');
    expect(back.replicas.filter(({ status }) => status === 'READY').map(({ id }) => id)).toEqual([1, 2]);
    const result = await load.stop();
    expect(outcomes(result)).toEqual({ 200: result.sent });
    await svc.end();
  });
});

test('a canary gets its share, is held and goes on, and then serves all requests without losing one', async () => {
  await withSvc(async (svc) => {
    await svc.ok(['serve', 'up', serviceFile(svc, 'one'), '-n', 'web']);
    const { endpoint } = await svc.ready('web', 2);
    const load = openLoad({ url: `${endpoint}/work` }, 100);
    const file = serviceFile(svc, 'two', '  update: {mode: canary, steps: [20], bake_seconds: 30, session: {header: x-user}}\n');
    await svc.ok(['serve', 'update', 'web', file, '--yes', '--no-wait']);
    // A pause before the first replica is ready would hold the canary without requests.
    await waitFor('the step', async () => (await svc.service('web')).update?.share === 0.2);
    await svc.ok(['serve', 'pause', 'web']);
    const answers = await Promise.all(Array.from({ length: 500 }, async () => (await answerOf(endpoint))[0]));
    expect(answers.filter((answer) => answer === 'two').length / 500).toBeCloseTo(0.2, 1);
    for (const user of ['ann', 'bob', 'cem', 'dee']) {
      const same = await Promise.all(Array.from({ length: 5 }, async () => (await answerOf(endpoint, { 'x-user': user }))[0]));
      expect(new Set(same).size).toBe(1);
    }
    expect(await svc.ok(['serve', 'status', 'web'])).toMatch(/\(canary\): 1 of 2 .*20 % of the requests; held/);
    await svc.ok(['serve', 'resume', 'web']);
    await waitFor('the end of the update', async () => (await svc.service('web')).update === undefined);
    expect((await answerOf(endpoint))[0]).toBe('two');
    const result = await load.stop();
    expect(outcomes(result)).toEqual({ 200: result.sent });
    const none = await svc.run(['serve', 'pause', 'web']);
    expect([none.code === 0, none.stderr]).toEqual([false, expect.stringContaining('SVC_NO_UPDATE')]);
    await svc.end();
  });
});

test('a canary that fails a third of its requests is rolled back by itself, and says why', async () => {
  await withSvc(async (svc) => {
    await svc.ok(['serve', 'up', serviceFile(svc, 'one'), '-n', 'web']);
    const { endpoint } = await svc.ready('web', 2);
    const load = openLoad({ url: `${endpoint}/work` }, 50);
    const file = serviceFile(svc, 'two faulty');
    const failed = await svc.run(['serve', 'update', 'web', file, '--mode', 'canary', '--steps', '25', '--bake', '1h', '--yes', '--wait']);
    expect([failed.code === 0, failed.stderr]).toEqual([false, expect.stringContaining('The canary of version 2 was rolled back')]);
    await waitFor('the old version alone', async () => (await svc.service('web')).activeVersions.join() === '1');
    const { sent } = await load.stop();
    expect(sent).toBeGreaterThan(0);
    expect(await svc.service('web')).toMatchObject({ status: 'READY', replicasReady: 2, update: { stopped: true, share: 0 } });
    for (let count = 0; count < 50; count += 1) expect((await answerOf(`${endpoint}/work`))[0]).toBe('one');
    await svc.end();
  });
});
