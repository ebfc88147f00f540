import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { withSvc } from '../support/e2e.ts';

const requests = 50;

/** Counts its requests and answers with the count, after a slow start. One thread of the balancer has the whole queue. */
const service = `resources:
  ports: 8080
service:
  readiness_probe: /
  load_balancer: {threads: 1}
  replica_policy:
    min_replicas: 0
    max_replicas: 1
    target_qps_per_replica: 100
run: |
  sleep 2
  exec node -e '
    let count = 0;
    require("node:http").createServer((request, response) => {
      if (request.url === "/") return response.end("ready");
      count += 1;
      response.end(String(count));
    }).listen(8080);'
`;

test('requests through a cold start from zero get 200, in order of arrival', { timeout: 300_000 }, async () => {
  await withSvc(async (svc) => {
    await svc.ok(['serve', 'up', svc.file('zero.yaml', service), '-n', 'zero']);
    const { endpoint } = await svc.service('zero');
    const replies: Promise<readonly [status: number, position: number]>[] = [];
    for (let number = 1; number <= requests; number += 1) {
      replies.push(fetch(`${endpoint}/${number}`).then(async (reply) => [reply.status, Number(await reply.text())] as const));
      // Each request has its own connection, and the next one must arrive after it.
      await sleep(10);
    }
    const all = await Promise.all(replies);
    expect(all.map(([status]) => status)).toEqual(Array.from({ length: requests }, () => 200));
    // On a busy machine the program may read one connection before another.
    const moves = all.map(([, position], index) => Math.abs(position - (index + 1)));
    expect(Math.max(...moves)).toBeLessThanOrEqual(requests / 10);
    await svc.end();
  });
});
