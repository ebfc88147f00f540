import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { aBalancerReplica } from '../support/balancer.ts';
import type { Behaviour } from '../support/faulty-replica/behaviour.ts';
import { printFigures } from '../support/figures.ts';
import { tally, Traffic } from '../support/traffic.ts';
import { waitFor } from '../support/wait-for.ts';
import { countsAtZero, withFaultyService } from './support.ts';

/** 30 s long. */
const streaming: Behaviour = { type: 'events', everyMs: 500, count: 60 };

test('draining 6 of 8 replicas completes 30 s streams and sends them no request', async () => {
  await withFaultyService(
    Array.from({ length: 8 }, () => streaming),
    async (balancer, replicas) => {
      const traffic = new Traffic(balancer.url);
      const streams = Array.from({ length: 40 }, () => traffic.send());
      await waitFor('all to be under way', () => replicas.every((replica) => replica.journal().length === 5));
      await sleep(2_000);

      const endpointSet = (phase: 'draining' | 'gone') =>
        replicas.flatMap(({ port }, index) => {
          if (index < 2) return [aBalancerReplica(port, index + 1)];
          return phase === 'draining' ? [aBalancerReplica(port, index + 1, { state: 'draining' })] : [];
        });
      await balancer.link.setReplicas(endpointSet('draining'));
      for (const replica of replicas.slice(0, 2)) await replica.become({ type: 'answer' });
      await traffic.sendMany(2_000, 16, (index) => (index % 2 === 0 ? { method: 'POST', body: 'x' } : {}));
      // An endpoint set that omits the draining replicas must not cut them either.
      await balancer.link.setReplicas(endpointSet('gone'));
      await traffic.sendMany(2_000, 16, () => ({}));
      await Promise.all(streams);

      printFigures('from 8 replicas to 2', { outcomes: JSON.stringify(tally(traffic.outcomes)) });
      expect(traffic.outcomes.filter(({ status, error }) => status !== 200 || error !== undefined)).toEqual([]);
      for (const replica of replicas.slice(2)) {
        // The replica records the end of each stream after it has sent it.
        await waitFor('it to note all ends', () => replica.journal().filter(({ what }) => what === 'done').length === 5);
        expect(replica.journal().filter(({ what }) => what === 'got')).toHaveLength(5);
      }
      await countsAtZero(balancer);
      traffic.close();
    },
  );
});
