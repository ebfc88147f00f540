import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import type { Behaviour } from '../support/faulty-replica/behaviour.ts';
import { printFigures, quantile } from '../support/figures.ts';
import { latencies, Traffic, type Outcome } from '../support/traffic.ts';
import { waitFor } from '../support/wait-for.ts';
import { withFaultyService } from './support.ts';

const working: Behaviour = { type: 'answer', afterMs: 10, spreadMs: 20 };
const windowMs = 5_000;
/** From the start of the hang until it must no longer affect clients. */
const recoverMs = 5_000;

const begunWithin = (outcomes: readonly Outcome[], from: number, ms: number): readonly Outcome[] =>
  outcomes.filter(({ startedAt }) => startedAt >= from && startedAt < from + ms);

const unanswered = (some: readonly Outcome[]): number => some.filter(({ status }) => status !== 200).length;

test.each(['least_load', 'round_robin'] as const)('a replica that accepts and never answers soon has no effect (%s)', async (policy) => {
  await withFaultyService(
    [working, working, working, working],
    async (balancer, [first]) => {
      const traffic = new Traffic(balancer.url);
      const stop = traffic.begin(32, 8, () => ({}));
      await sleep(1_000);
      const beforeAt = performance.now();
      await sleep(windowMs);
      await first?.become({ type: 'hang' });
      const hungAt = performance.now();
      const isSuspected = (): boolean => balancer.link.of('suspect').some(({ replicaId }) => replicaId === 1);
      await waitFor('the balancer to notice', isSuspected, { everyMs: 5 });
      const noticedMs = performance.now() - hungAt;
      // On a busy machine the requests that show it take longer.
      const recoveredAt = hungAt + Math.max(recoverMs, noticedMs);
      await sleep(recoveredAt + windowMs - performance.now());
      const outcomes = await stop();
      traffic.close();

      const before = latencies(begunWithin(outcomes, beforeAt, windowMs));
      const during = begunWithin(outcomes, hungAt, recoveredAt - hungAt);
      const after = begunWithin(outcomes, recoveredAt, windowMs);
      const answered = latencies(after.filter(({ status }) => status === 200));
      printFigures(`one of four hangs, ${policy}`, {
        'p99 before': quantile(before, 0.99),
        'p99 of all answered from 5 s on': quantile(answered, 0.99),
        'ms until noticed': noticedMs,
        'unanswered of those begun in the first 5 s': `${unanswered(during)} of ${during.length}`,
        'unanswered of those begun later': `${unanswered(after)} of ${after.length}`,
      });
      // A p99 permits one in a hundred.
      expect(unanswered(after)).toBeLessThan(after.length / 100);
      expect(balancer.link.of('stats').find(({ broken }) => broken?.[1] !== undefined)?.broken).toEqual({
        1: { hung: expect.any(Number), cutOff: 0, seconds: expect.any(Number), ageSeconds: expect.any(Number) },
      });
    },
    { policy, firstByteTimeoutMs: 20_000 },
  );
});
