import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { printFigures, spread } from '../support/figures.ts';
import { processesOf } from '../support/leaks.ts';
import type { LoadResult } from '../support/load.ts';
import { SupervisedBalancer, withSupervisedBalancer } from '../support/supervised-balancer.ts';
import { waitFor } from '../support/wait-for.ts';

const perSecond = 200;
const kills = 20;

function print(title: string, result: LoadResult, waits: readonly number[]): void {
  printFigures(title, {
    requests: result.sent,
    answered: result.statuses[200] ?? 0,
    'failed before the first byte': JSON.stringify(result.failedBefore),
    'ms until the next hello': spread(waits.toSorted((a, b) => a - b)),
    'ms of the slowest request': Math.round(result.latencies.at(-1) ?? 0),
  });
}

/** Requests that have no outcome yet: sent to the balancer, or waiting in the kernel's queue. */
const inFlight = ({ sent, statuses, failedBefore, failedAfter }: LoadResult): number =>
  sent - [statuses, failedBefore, failedAfter].flatMap((counts) => Object.values(counts)).reduce((sum, count) => sum + count, 0);

test('twenty kills at 200 requests/s refuse no connection, and fail only requests in flight', async () => {
  await withSupervisedBalancer(async (balancer) => {
    const load = balancer.load(perSecond);
    const waits: number[] = [];
    let most = 0;
    for (let kill = 0; kill < kills; kill += 1) {
      await sleep(1_500);
      most += inFlight(load.current());
      waits.push(await balancer.replaceBy('SIGKILL'));
    }
    const result = await load.stop();
    print('20 kills of a balancer', result, waits);
    const { ECONNRESET: reset = 0, ...others } = result.failedBefore;
    expect([others, result.failedAfter, Object.keys(result.statuses)]).toEqual([{}, {}, ['200']]);
    expect(reset).toBeLessThanOrEqual(most);
    expect(balancer.supervisor.recentCrashes?.count).toBe(kills);
  });
});

test('a stopped balancer is killed within seconds, and connections that it did not accept are served', async () => {
  await withSupervisedBalancer(async (balancer) => {
    const { identity } = balancer.supervisor;
    process.kill(identity?.pid ?? 0, 'SIGSTOP');
    const load = balancer.load(perSecond);
    const wait = await balancer.replaceBy('SIGSTOP');
    const result = await load.stop();
    print('a stopped balancer', result, [wait]);
    // A thread may have accepted some before the signal reached it.
    const { ECONNRESET: reset = 0, ...others } = result.failedBefore;
    expect([others, result.failedAfter, result.statuses]).toEqual([{}, {}, { 200: result.sent - reset }]);
    expect(reset).toBeLessThan(perSecond / 20);
  });
});

test('without a supervisor a standby serves after a kill, and the end of a service ends both', async () => {
  await withSupervisedBalancer(async ({ supervisor }, config, dir) => {
    const { identity } = supervisor;
    await supervisor.release();
    process.kill(identity?.pid ?? 0, 'SIGKILL');
    const reply = await fetch(`http://127.0.0.1:${config.port}/`);
    expect([reply.status, await reply.text()]).toEqual([200, 'ok']);
    const next = new SupervisedBalancer(dir, config);
    await next.isUp(identity?.pid);
    await next.supervisor.end(0);
    // A killed process may take a moment to end.
    await waitFor('both to be gone', () => processesOf(dir).length === 0, { describe: () => processesOf(dir) });
  });
});
