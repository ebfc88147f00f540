import { expect, test } from 'vitest';
import { withSvc } from '../support/e2e.ts';
import { openLoad, outcomes } from '../support/load.ts';
import { waitFor } from '../support/wait-for.ts';

test('load scales the service out and back without a failed request', async () => {
  await withSvc(async (svc) => {
    await svc.ok(['serve', 'up', 'examples/autoscaling/service.yaml', '-n', 'scaling']);
    const { endpoint } = await svc.ready('scaling', 1);
    expect((await svc.service('scaling')).targetReplicas).toBe(1);

    const target = { url: `${endpoint}/` };
    const step = openLoad(target, 10);
    await svc.ready('scaling', 3);
    const during = await step.stop();

    // A low rate of requests goes on while replicas drain.
    const trickle = openLoad(target, 1);
    const back = async (): Promise<boolean> => {
      const { targetReplicas, replicasTotal, replicasReady } = await svc.service('scaling');
      return targetReplicas === 1 && replicasTotal === 1 && replicasReady === 1;
    };
    await waitFor('one replica again', back, { everyMs: 1_000, describe: () => svc.service('scaling') });
    const after = await trickle.stop();
    expect([outcomes(during), outcomes(after)]).toEqual([{ 200: during.sent }, { 200: after.sent }]);

    const causes = (await svc.events('scaling')).map(({ cause }) => cause);
    expect(causes.filter((cause) => cause === 'autoscale').length).toBeGreaterThan(1);
    expect(causes).toContain('scale-down');
    await svc.end();
  });
});

test('the forecast follows a jump of the load within one decision and a start', async () => {
  await withSvc(async (svc) => {
    await svc.ok(['serve', 'up', 'examples/autoscaling/forecast.yaml', '-n', 'forecast']);
    const { endpoint } = await svc.ready('forecast', 1);
    const step = openLoad({ url: `${endpoint}/` }, 10);
    await svc.ready('forecast', 4);
    const decisions = (await svc.events('forecast')).filter(({ cause }) => cause === 'autoscale').map(({ message }) => message);
    const during = await step.stop();
    expect(outcomes(during)).toEqual({ 200: during.sent });
    for (const message of decisions) expect(message).toContain('requests/s in the last minute');
    // The first one may see a part of the ten seconds. With request_rate, each sees a sixth of the window more.
    expect(decisions.length).toBeLessThanOrEqual(2);
    expect(decisions.at(-1)).toMatch(/to 4 replicas\.$/);
    await svc.end();
  });
});
