import { expect, test } from 'vitest';
import { printFigures } from '../support/figures.ts';
import { Traffic } from '../support/traffic.ts';
import { countsAtZero, withFaultyService } from './support.ts';

const requests = 800;
const width = 4;

test.each(['close', 'reset'] as const)('a replica that truncates all replies (%s) gets few of 800 requests', async (ending) => {
  await withFaultyService(
    [
      { type: 'half', ending },
      { type: 'answer', afterMs: 5 },
    ],
    async (balancer) => {
      const traffic = new Traffic(balancer.url);
      await traffic.sendMany(requests, width, () => ({}));
      traffic.close();
      const truncated = traffic.outcomes.filter(({ error }) => error === 'ABORTED');
      const lines = await balancer.accessLog(requests);
      const toFaulty = lines.filter(({ replica }) => replica === 1).length;
      printFigures(`one of two replicas breaks off its replies: ${ending}`, { truncated: `${truncated.length} of ${requests}`, toFaulty });
      expect(lines.filter(({ outcome }) => outcome === 'truncated')).toHaveLength(truncated.length);
      // Five and those in flight; again after each ejection of 10 s and more, on a slow machine.
      const rounds = 1 + (traffic.outcomes.at(-1)?.endedAt ?? 0) / 10_000 - (traffic.outcomes[0]?.startedAt ?? 0) / 10_000;
      expect(truncated.length).toBeLessThanOrEqual(rounds * (5 + width));
      const { broken } = await countsAtZero(balancer);
      expect(broken).toEqual({ 1: { hung: 0, cutOff: truncated.length, seconds: expect.any(Number), ageSeconds: expect.any(Number) } });
    },
  );
});
