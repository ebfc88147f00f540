import { expect, test } from 'vitest';
import { withSvc } from '../support/e2e.ts';
import { openLoad, outcomes } from '../support/load.ts';
import { waitFor } from '../support/wait-for.ts';

test('a step of load brings replicas, its end takes them away, and no request fails on the way', { timeout: 400_000 }, async () => {
  await withSvc(async (svc) => {
    await svc.ok(['serve', 'up', 'examples/autoscaling/service.yaml', '-n', 'scaling']);
    const { endpoint } = await svc.ready('scaling', 1);
    expect((await svc.service('scaling')).targetReplicas).toBe(1);

    const target = { url: `${endpoint}/` };
    const step = openLoad(target, 10);
    await svc.ready('scaling', 3, 120_000);
    const during = await step.stop();

    // One request now and then goes on while replicas leave.
    const trickle = openLoad(target, 1);
    const back = async (): Promise<boolean> => {
      const { targetReplicas, replicasTotal, replicasReady } = await svc.service('scaling');
      return targetReplicas === 1 && replicasTotal === 1 && replicasReady === 1;
    };
    await waitFor('one replica again', back, { timeoutMs: 200_000, everyMs: 1_000, describe: () => svc.service('scaling') });
    const after = await trickle.stop();
    expect([outcomes(during), outcomes(after)]).toEqual([{ 200: during.sent }, { 200: after.sent }]);

    const causes = (await svc.events('scaling')).map(({ cause }) => cause);
    expect(causes.filter((cause) => cause === 'autoscale').length).toBeGreaterThan(1);
    expect(causes).toContain('scale-down');
    await svc.end();
  });
});
