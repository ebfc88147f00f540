import { join } from 'node:path';
import { writeFileSync } from 'node:fs';
import { expect, test, vi } from 'vitest';
import { anUpdatePlan } from '../../../test/support/api.ts';
import { runInProcess } from '../../../test/support/cli-world.ts';
import { FakeClock } from '../../../test/support/fake-clock.ts';
import { withTempHome } from '../../../test/support/temp-home.ts';
import { aServiceView } from '../../../test/support/views.ts';
import type { FakeRoutes } from '../../../test/support/fake-client.ts';

test('the plan of an update or rollback names missing capacity and the flags that need none', async () => {
  await withTempHome(async (dir) => {
    const file = join(dir, 'service.yaml');
    writeFileSync(file, 'resources: {ports: 8080}\nrun: serve\nservice: {readiness_probe: /}\n');
    const noCapacity = 'lab/h1 has 0 of 2 L4 free, 1 requested.';
    const plan = (mode: 'rolling' | 'canary') => ({ ...anUpdatePlan, update: { ...anUpdatePlan.update, mode }, noCapacity });
    const routes: FakeRoutes = {
      listServices: () => ({ services: [aServiceView()] }),
      getService: () => aServiceView(),
      serviceEvents: () => [],
      updateService: () => plan('canary'),
      rollbackService: () => plan('rolling'),
    };
    const updated = await runInProcess(['serve', 'update', 'chat', file, '--yes'], { routes });
    expect(updated).toMatchObject({ code: 0 });
    expect(updated.stderr).toContain(`have no capacity now: ${noCapacity}`);
    expect(updated.stderr).toContain('with --mode rolling --max-unavailable 1');
    const back = await runInProcess(['serve', 'rollback', 'chat', '--yes'], { routes });
    expect(back.stderr).toContain('svc serve update with --max-unavailable 1');
  });
});

test('--wait also waits until the balancer has handed over', async () => {
  await withTempHome(async (dir) => {
    const file = join(dir, 'service.yaml');
    writeFileSync(file, 'resources: {ports: 8080}\nrun: serve\nservice: {readiness_probe: /}\n');
    let views = 0;
    const routes: FakeRoutes = {
      listServices: () => ({ services: [aServiceView()] }),
      // The first view is from before the update.
      getService: () => aServiceView({ version: 2, ...((views += 1) <= 3 && { handingOver: true }) }),
      serviceEvents: () => [],
      updateService: () => anUpdatePlan,
    };
    const updated = await runInProcess(['serve', 'update', 'chat', file, '--yes', '--wait'], { routes });
    expect([updated.code, views]).toEqual([0, 4]);
  });
});

test('--wait gives up on a balancer that does not hand over for two minutes', async () => {
  await withTempHome(async (dir) => {
    const file = join(dir, 'service.yaml');
    writeFileSync(file, 'resources: {ports: 8080}\nrun: serve\nservice: {readiness_probe: /}\n');
    const clock = new FakeClock();
    let elapsedMs = 0;
    vi.spyOn(clock, 'monotonic').mockImplementation(() => elapsedMs);
    const routes: FakeRoutes = {
      listServices: () => ({ services: [aServiceView()] }),
      getService: () => {
        elapsedMs += 20_000;
        return aServiceView({ version: 2, handingOver: true });
      },
      serviceEvents: () => [],
      updateService: () => anUpdatePlan,
    };
    const updated = await runInProcess(['serve', 'update', 'chat', file, '--yes', '--wait'], { routes, clock });
    expect(updated).toMatchObject({ code: 70, stderr: expect.stringContaining('its balancer has not handed over for 120 s') });
    expect(updated.stderr).toContain('code: SVC_NOT_HANDED_OVER');
    expect(updated.stderr).toContain('svc serve logs chat --load-balancer');
  });
});
