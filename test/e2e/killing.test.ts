import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { withSvc } from '../support/e2e.ts';
import { closedLoad } from '../support/load.ts';
import { killHard, programsOf } from '../support/processes.ts';

/** Requests that a killed replica had begun to answer: nobody can finish those. Two are under way at most at each of 64 connections. */
const cutAtMost = 64;

test('10,000 requests over 64 connections, one replica killed each second: only replies that had begun are cut', async () => {
  await withSvc(async (svc) => {
    await svc.ok(['serve', 'up', 'examples/hello/service.yaml', '-n', 'hello']);
    const { endpoint } = await svc.ready('hello', 2);
    const loaded = new AbortController();
    let kills = 0;
    const killing = async (): Promise<void> => {
      while (!loaded.signal.aborted) {
        const [oldest] = programsOf(svc.home, /http\.server/);
        if (oldest !== undefined) kills += killHard([oldest]);
        await sleep(1_000);
      }
    };
    const killer = killing();
    const result = await closedLoad({ url: `${endpoint}/replica.txt` }, { requests: 10_000, connections: 64 });
    loaded.abort();
    await killer;
    const cut = Object.values(result.failedAfter).reduce((sum, count) => sum + count, 0);
    console.info(`sent ${result.sent}, killed ${kills}, replies cut after they had begun: ${cut}`);
    expect(kills).toBeGreaterThan(1);
    expect(result.failedBefore).toEqual({});
    expect(result.statuses).toEqual({ 200: result.sent - cut });
    expect(cut).toBeLessThanOrEqual(cutAtMost);
    await svc.ready('hello', 2);
    await svc.end();
  });
});
