import { readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, expect, test, vi } from 'vitest';
import { runInProcess } from '../../../test/support/cli-world.ts';
import { withTempHome } from '../../../test/support/temp-home.ts';
import { writeTwoContexts } from '../../../test/support/two-contexts.ts';
import { systemClock } from '../../shared/clock.ts';

afterEach(() => {
  vi.unstubAllEnvs();
});

test('manifests in a folder come with the kubectl command for their context', async () => {
  await withTempHome(async (home) => {
    const kubeconfig = writeTwoContexts(home, [{ name: 'ann', user: { token: 'a-token' } }]);
    writeFileSync(join(home, 'config.yaml'), 'serve: {controller: {high_availability: true, image: "svc:1"}}\n');
    vi.stubEnv('KUBECONFIG', kubeconfig);
    const folder = join(home, 'deploy');
    const words = ['controller', 'manifests', '--context', 'west', '-o', folder];
    const { code, stderr } = await runInProcess(words, { home, clock: systemClock });
    const { length } = readdirSync(folder);
    expect({ code, stderr }).toEqual({
      code: 0,
      stderr: expect.stringContaining(
        `Wrote ${length} objects to ${folder}. To make them: kubectl --context west apply --server-side -f ${folder}\n`,
      ),
    });
  });
});
