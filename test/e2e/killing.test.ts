import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { withSvc } from '../support/e2e.ts';
import { closedLoad } from '../support/load.ts';
import { killHard, programsOf } from '../support/processes.ts';

/**
 * Requests that a killed replica had begun to answer; no retry can complete them. At most two are in flight on each of
 * 64 connections.
 */
const cutAtMost = 64;

test('with replicas killed one after another only replies that had begun are cut', async () => {
  await withSvc(async (svc) => {
    await svc.ok(['serve', 'up', 'examples/hello/service.yaml', '-n', 'hello']);
    const { endpoint } = await svc.ready('hello', 2);
    const loaded = new AbortController();
    const killed: number[] = [];
    const killing = async (): Promise<void> => {
      while (!loaded.signal.aborted) {
        const [oldest] = programsOf(svc.home, /server\.mjs/);
        // On a busy machine a replica takes longer than a second to start. Without a ready one, requests would only wait.
        const { replicasReady } = await svc.service('hello');
        if (oldest !== undefined && replicasReady > 1 && killHard([oldest]) > 0) killed.push(oldest.pid);
        await sleep(1_000);
      }
    };
    const killer = killing();
    const results = [];
    while (killed.length < 5) results.push(await closedLoad({ url: `${endpoint}/replica.txt` }, { requests: 10_000, connections: 64 }));
    loaded.abort();
    await killer;
    for (const result of results) {
      const cut = Object.values(result.failedAfter).reduce((sum, count) => sum + count, 0);
      console.info(`sent ${result.sent}, killed ${killed.length}, replies cut after they had begun: ${cut}`);
      expect(result.failedBefore).toEqual({});
      expect(result.statuses).toEqual({ 200: result.sent - cut });
      expect(cut).toBeLessThanOrEqual(cutAtMost);
    }
    await svc.ready('hello', 2);
    await svc.end();
  });
});
