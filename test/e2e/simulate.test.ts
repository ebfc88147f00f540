import { expect, test } from 'vitest';
import { withSvc } from '../support/e2e.ts';

const server = `require('node:http').createServer((request, response) => response.end('hello')).listen(8080);`;
const file = `secrets: {TOKEN: null, KEY: quite-secret}
service: {readiness_probe: /, replica_policy: {min_replicas: 1, max_replicas: 2, target_qps_per_replica: 5}}
resources: {infra: local, ports: 8080}
workdir: .
run: exec node server.cjs
`;

test('a running service is replayed with its own file and its access log, which say nothing secret', async () => {
  await withSvc(async (svc) => {
    svc.file('web/server.cjs', server);
    await svc.ok(['serve', 'up', svc.file('web/service.yaml', file), '-n', 'web', '--secret', 'TOKEN=very-secret']);
    const { endpoint } = await svc.ready('web', 1);
    for (let count = 0; count < 3; count += 1) await (await fetch(endpoint)).text();
    // A service of some seconds is too young for scores. The refusal names what the access log had.
    const young = await svc.run(['simulate', 'web', '--set', 'max_replicas=9']);
    expect(young).toMatchObject({ code: 2, stderr: expect.stringMatching(/The trace access log of web has only \d+ s\./) });
    const wrong = await svc.run(['simulate', 'web', '--set', 'max_replicas=some']);
    expect(wrong).toMatchObject({ code: 2, stderr: expect.stringContaining('max_replicas: some') });
    expect(`${young.stderr}${wrong.stderr}`).not.toContain('-secret');
    await svc.end();
  });
});
