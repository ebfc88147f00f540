import { once } from 'node:events';
import { request } from 'node:http';
import { text } from 'node:stream/consumers';
import { expect, test } from 'vitest';
import { withSvc } from '../support/e2e.ts';

const requests = 50;

/**
 * Counts its requests and answers with the count, after a slow start. One thread of the balancer has the whole queue,
 * and one connection at a time makes the order in which requests leave it visible.
 */
const service = `resources:
  ports: 8080
service:
  readiness_probe: /
  load_balancer: {threads: 1, max_connections_per_replica: 1}
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

test('requests through a cold start from zero get 200, in order of arrival', async () => {
  await withSvc(async (svc) => {
    await svc.ok(['serve', 'up', svc.file('zero.yaml', service), '-n', 'zero']);
    const { endpoint } = await svc.service('zero');
    const replies: Promise<readonly [status: number | undefined, position: number]>[] = [];
    for (let number = 1; number <= requests; number += 1) {
      const sent = request(`${endpoint}/${number}`, { agent: false });
      replies.push(
        new Promise((resolve, reject) => {
          sent.once('error', reject);
          sent.once('response', (reply) => void text(reply).then((body) => resolve([reply.statusCode, Number(body)]), reject));
        }),
      );
      sent.end();
      // Each request has its own connection, and the next one must arrive after it.
      await once(sent, 'finish');
    }
    expect(await Promise.all(replies)).toEqual(Array.from({ length: requests }, (_, index) => [200, index + 1]));
    await svc.end();
  });
});
