import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { runInProcess } from '../../../test/support/cli-world.ts';
import type { FakeRoutes } from '../../../test/support/fake-client.ts';
import { finish, startSvc } from '../../../test/support/run-svc.ts';
import { withTempHome } from '../../../test/support/temp-home.ts';
import { aServiceView } from '../../../test/support/views.ts';
import { waitFor } from '../../../test/support/wait-for.ts';

const routes: FakeRoutes = { createService: () => ({ service: aServiceView() }) };

test('up mentions the start after a reboot once, on a terminal and not as JSON', async () => {
  await withTempHome(async (home) => {
    const file = join(home, 'service.yaml');
    writeFileSync(file, 'service: { readiness_probe: / }\nresources: { ports: 8080 }\nrun: serve\n');
    const says = async (args: readonly string[], tty: boolean): Promise<boolean> =>
      (await runInProcess(['serve', 'up', file, '--no-wait', ...args], { routes, tty, home })).stderr.includes('svc controller install');
    const answers = [await says(['--json'], true), await says([], false), await says([], true), await says([], true)];
    expect(answers).toEqual([false, false, true, false]);
  });
});

test('start --foreground becomes the controller, and ends with 0 on SIGTERM, as systemd expects', async () => {
  await withTempHome(async (home) => {
    const child = startSvc(['controller', 'start', '--foreground'], { home });
    const ended = finish(child);
    await waitFor('the control socket', () => existsSync(join(home, 'run/controller.sock')));
    child.kill('SIGTERM');
    const { code, stdout } = await ended;
    expect({ code, stdout }).toEqual({ code: 0, stdout: expect.stringContaining('"msg":"the controller is ready"') });
  });
});
